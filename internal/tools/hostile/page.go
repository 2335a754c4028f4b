//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"kprobelab/internal/page"
)

// oddTexts are names, texts and paths.
var oddTexts = []string{
	"gcd", "gcd+0x5", "<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "\x1b[2J", "\u202egnp.exe", "../../etc/passwd", "%2e%2e/", "\x00", "90 cc", "0f0b", "-1", "99999999999999999999",
	"kprobe gcd+0x5", "kretprobe fib:2", "gcd(1071,462); fib(4)", "fib(30)", "ma4000", "m", "6.1", "2.6.18", "", strings.Repeat("A", 1<<16), strings.Repeat("90", 4097), "&lt;", "]]>", "é\xff",
}

// askPage asks the page whatever it can be asked, of images that are damaged: each answer is JSON, is not long, and has no control character.
func askPage(rng *rand.Rand) error {
	guest, err := os.ReadFile(os.Getenv("HOSTILE_GUEST"))
	if err != nil {
		return err
	}
	p := &page.Page{}
	for range 60 {
		q := map[string]any{"do": []string{"hello", "code", "open", "search", "function", "explain", "watch", "lessons", "check", "rm"}[rng.IntN(10)]}
		for _, key := range []string{"hex", "name", "release", "text", "at", "offset", "probes", "calls", "schedule", "sub", "n", "answer", "by", "cpus", "optimize"} {
			switch rng.IntN(4) {
			case 0:
				q[key] = oddTexts[rng.IntN(len(oddTexts))]
			case 1:
				q[key] = rng.IntN(100) - 1
			case 2:
				q[key] = []string{oddTexts[rng.IntN(len(oddTexts))], "gcd"}
			}
		}
		var file []byte
		if q["do"] == "open" {
			q["name"] = oddTexts[rng.IntN(len(oddTexts))]
			file = mutate(rng, guest)
		}
		b, err := json.Marshal(q)
		if err != nil {
			return err
		}
		if rng.IntN(10) == 0 {
			b = mutate(rng, b)
		}
		answer := p.Answer(string(b), file)
		switch {
		case !json.Valid([]byte(answer)):
			return fmt.Errorf("%s: the answer is no JSON", b)
		case len(answer) > 16<<20:
			return fmt.Errorf("%s: the answer has %d bytes", b, len(answer))
		case strings.Contains(answer, "the program made a mistake"):
			return fmt.Errorf("%s: %s", b, answer)
		case strings.ContainsFunc(answer, func(r rune) bool { return r < ' ' || r == '<' }): // JSON escapes both
			return fmt.Errorf("%s: %q has a control character or begins an element", b, answer)
		}
	}
	return nil
}

// oddRequests serves a page and images, and asks for it in odd ways: what is answered as HTML is the page alone, and the server goes on.
func oddRequests(c *tryOut) {
	const pageText = "<!doctype html><title>page</title>"
	names := []string{"<img src=x onerror=alert(1)>", "a\"b", "é", "\x1b[2J", "..", "a b", "\u202eelf"}
	name := strings.ReplaceAll(names[c.rng.IntN(len(names))], "..", "x")
	ctx, cancel := context.WithTimeout(context.Background(), c.o.patience())
	defer cancel()
	cmd := exec.CommandContext(ctx, c.program, "serve", "--page", c.file("page.html", []byte(pageText)), c.file(name, mutate(c.rng, c.seeds.guest)))
	cmd.Dir = c.dir
	errs := &keep{}
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.found("serve", err.Error())
		return
	}
	began := time.Now()
	line, _ := bufio.NewReader(out).ReadString('\n')
	_, address, _ := strings.Cut(line, "http://")
	address, _, _ = strings.Cut(address, "/")
	for range 20 {
		if what := oddRequest(c.rng, address, pageText); what != "" {
			c.found("serve", what)
		}
	}
	if what := ask(address, "GET / HTTP/1.1\r\nHost: "+address+"\r\nConnection: close\r\n\r\n"); !strings.Contains(what, pageText) {
		c.found("serve", "it does not go on: "+first(what))
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // a shell lets what it runs in the background ignore the other one
	_ = cmd.Wait()
	if crashed.MatchString(errs.b.String()) || len(errs.seen) > 0 {
		c.found("serve", "crashed, or control characters: "+first(errs.b.String()))
	}
	c.tally.ran(c.kind, time.Since(began), busy(cmd), usage(cmd), filepath.Base(c.program)+" serve")
}

// oddRequest sends one, and says what is wrong with the answer.
func oddRequest(rng *rand.Rand, address, pageText string) string {
	text := func() string { return oddTexts[rng.IntN(len(oddTexts))] }
	path := []string{"/", "/images", "/image/0", "/image/1", "/image/-1", "/image/99999999999999999999", "//image/0", "/../../etc/passwd", "/" + text(), "http://other/"}[rng.IntN(10)]
	host := []string{address, address, address, "evil.example", "127.0.0.1", "localhost:80", text(), ""}[rng.IntN(8)]
	method := []string{"GET", "GET", "GET", "HEAD", "POST", "PUT", "TRACE", text()}[rng.IntN(8)]
	request := method + " " + path + " HTTP/1." + fmt.Sprint(rng.IntN(3)) + "\r\nHost: " + host + "\r\n"
	for range rng.IntN(4) {
		request += []string{"Range: bytes=0-", "Range: bytes=" + strings.Repeat("0-0,", 1<<rng.IntN(12)), "Content-Length: 99999999999", "Transfer-Encoding: chunked", "Sec-Fetch-Site: cross-site", "X: " + text(), "Connection: close"}[rng.IntN(7)] + "\r\n"
	}
	b := []byte(request + "\r\n")
	if rng.IntN(3) == 0 {
		b = mutate(rng, b)
	}
	answer := ask(address, string(b))
	head, body, _ := strings.Cut(answer, "\r\n\r\n")
	if strings.Contains(strings.ToLower(head), "content-type: text/html") && body != "" && body != pageText {
		return fmt.Sprintf("%q: HTML that is not the page: %q", request, body[:min(len(body), 200)])
	}
	return ""
}

// ask sends a request and reads what comes, for a while.
func ask(address, request string) string {
	conn, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(300 * time.Millisecond))
	_, _ = io.WriteString(conn, request)
	b, _ := io.ReadAll(io.LimitReader(conn, 1<<20))
	return string(b)
}
