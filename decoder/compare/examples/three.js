// The line protocol in JavaScript: a decoder that knows three instructions.
require('readline').createInterface({input: process.stdin}).on('line', (line) => {
	const b = Buffer.from(line, 'hex');
	let answer = '0 -';
	if (b[0] === 0x90) answer = '1 none';
	else if (b[0] === 0xc3) answer = '1 ret';
	else if (b[0] === 0xeb) answer = '2 jmp ' + (2 + b[1]); // wrong: a displacement has a sign
	process.stdout.write(answer + '\n');
});
