package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path"
	"slices"
	"time"
)

// user is the one that programs of the image run as.
const user = 65532

// imageFile writes an OCI image layout as a tar file: one layer with the files, a user that is not root, a home and
// a /tmp. No daemon and no root is needed.
func imageFile(out, version string, files []string) error {
	when, err := epoch()
	if err != nil {
		return err
	}
	layer, err := entries("", files)
	if err != nil {
		return err
	}
	layer = withFolders(append(layer,
		entry{"home/kprobelab", 0o755, nil, user}, entry{"tmp", 0o1777, nil, 0},
		entry{"etc/passwd", 0o644, []byte("root:x:0:0:root:/:/\nkprobelab:x:65532:65532:kprobelab:/home/kprobelab:/\n"), 0},
		entry{"etc/group", 0o644, []byte("root:x:0:\nkprobelab:x:65532:\n"), 0}))
	list, err := layout(layer, version, when)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := tarred(&b, list, when); err != nil {
		return err
	}
	return os.WriteFile(out, b.Bytes(), 0o644)
}

// withFolders adds the folders above each entry that are missing, as root's.
func withFolders(list []entry) []entry {
	there := map[string]bool{}
	for _, e := range list {
		there[e.name] = true
	}
	for _, e := range slices.Clone(list) {
		for dir := path.Dir(e.name); dir != "." && !there[dir]; dir = path.Dir(dir) {
			there[dir] = true
			list = append(list, entry{dir, 0o755, nil, 0})
		}
	}
	return list
}

// The types of the OCI image specification, with the fields that are used.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    *platform         `json:"platform,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type config struct {
	Created      string `json:"created"`
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		User       string
		Env        []string
		Entrypoint []string
		WorkingDir string
		Labels     map[string]string
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
	History []history `json:"history"`
}

type history struct {
	Created   string `json:"created"`
	CreatedBy string `json:"created_by"`
}

// layout is the files of an image layout (OCI image specification, "Image Layout Specification").
func layout(layer []entry, version string, when time.Time) ([]entry, error) {
	var plain, packed bytes.Buffer
	if err := tarred(&plain, layer, when); err != nil {
		return nil, err
	}
	if err := gzipped(&packed, layer, when); err != nil {
		return nil, err
	}
	const of = "application/vnd.oci.image."
	list := []entry{{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`), 0}, {"blobs", 0o755, nil, 0}, {"blobs/sha256", 0o755, nil, 0}}
	blob := func(kind string, text []byte) descriptor {
		sum := sum(text)
		list = append(list, entry{"blobs/sha256/" + sum, 0o644, text, 0})
		return descriptor{MediaType: of + kind, Digest: "sha256:" + sum, Size: len(text)}
	}
	c := config{Created: when.Format(time.RFC3339), Architecture: "amd64", OS: "linux"}
	c.Config.User, c.Config.WorkingDir = "65532:65532", "/home/kprobelab"
	c.Config.Env = []string{"PATH=/usr/bin", "HOME=/home/kprobelab"}
	c.Config.Entrypoint = []string{"/usr/bin/kprobelab"}
	c.Config.Labels = map[string]string{"org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "GPL-2.0-only", "org.opencontainers.image.title": "kprobelab"}
	c.RootFS.Type, c.RootFS.DiffIDs = "layers", []string{"sha256:" + sum(plain.Bytes())}
	c.History = []history{{c.Created, "make dist"}}
	configText, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	m := manifest{2, of + "manifest.v1+json", blob("config.v1+json", configText), []descriptor{blob("layer.v1.tar+gzip", packed.Bytes())}}
	manifestText, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	d := blob("manifest.v1+json", manifestText)
	d.Platform, d.Annotations = &platform{"amd64", "linux"}, map[string]string{"org.opencontainers.image.ref.name": version}
	indexText, err := json.Marshal(index{2, of + "index.v1+json", []descriptor{d}})
	if err != nil {
		return nil, err
	}
	return append(list, entry{"index.json", 0o644, indexText, 0}), nil
}

func sum(text []byte) string {
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}
