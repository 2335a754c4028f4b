// iced, asked in the line protocol of docs/decoder.md. make deps-test fetches it from
// npm and puts the path of its module into the first argument.
'use strict';
const iced = require(process.argv[2]);
const {Code, FlowControl, Mnemonic, OpKind} = iced;
const mode = process.argv[3] || '';
const formatter = new iced.Formatter(iced.FormatterSyntax.Gas);
formatter.ripRelativeAddresses = true;

const names = {};
for (const [key, value] of Object.entries(Mnemonic)) names[value] = key;
const loops = /^(Loop(e|ne)?|Jr?e?cxz)$/;

function classOf(i) {
	const name = names[i.mnemonic];
	if (/^(Ud[012])$/.test(name)) return 'undefined';
	if (/^(Syscall|Sysenter|Sysexitq?|Sysretq?)$/.test(name)) return 'syscall';
	if (/^(Int|Int1|Int3|Into)$/.test(name)) return 'int';
	if (/^(Iretd?q?|Retfq?|Uiret|Eret[su])$/.test(name)) return 'far';
	if (name === 'Xbegin' || name === 'Rsm') return 'none';
	if (loops.test(name)) return 'loop';
	switch (i.flowControl) {
	case FlowControl.UnconditionalBranch: return 'jmp';
	case FlowControl.ConditionalBranch: return 'jcc';
	case FlowControl.Call: return i.isCallNear ? 'call' : name === 'Call' ? 'far' : 'none';
	case FlowControl.IndirectBranch: return i.isJmpFarIndirect ? 'far' : 'indirect-jmp';
	case FlowControl.IndirectCall: return i.isCallFarIndirect ? 'far' : 'indirect-call';
	case FlowControl.Return: return 'ret';
	}
	return 'none';
}

// "amd" reads as AMD's processors do, without MPX.
const options = mode === 'amd' ? iced.DecoderOptions.AMD : iced.DecoderOptions.MPX;

function answer(bytes) {
	const d = new iced.Decoder(64, bytes, options);
	const i = new iced.Instruction();
	d.decodeOut(i);
	let text = '0 -';
	if (i.code !== Code.INVALID) {
		text = i.length + ' ' + classOf(i);
		if (i.op0Kind === OpKind.NearBranch64 || i.op0Kind === OpKind.NearBranch16 || i.op0Kind === OpKind.NearBranch32)
			text += ' ' + BigInt.asIntN(64, i.nearBranch64);
		if (mode === 'text') text += ' ; ' + formatter.format(i);
	}
	i.free();
	d.free();
	return text;
}

function speed(passes, text) {
	const code = require('fs').readFileSync(0);
	const d = new iced.Decoder(64, code, options);
	const i = new iced.Instruction();
	const piece = 15 * 10000;
	let total = 0;
	for (let from = 0; from + 15 <= code.length; from += piece) {
		const end = Math.min(code.length, from + piece);
		let best = Infinity;
		for (let pass = 0; pass < passes; pass++) {
			const began = process.hrtime.bigint();
			for (let at = from; at + 15 <= end; at += 15) {
				d.position = at;
				d.decodeOut(i);
				if (text) formatter.format(i);
			}
			best = Math.min(best, Number(process.hrtime.bigint() - began));
		}
		total += best;
	}
	// The windows are there twice: in Buffer and in the module's memory.
	const rss = Math.round(/VmHWM:\s*(\d+)/.exec(require('fs').readFileSync('/proc/self/status'))[1] - 2 * code.length / 1024);
	console.log((total / Math.floor(code.length / 15)).toFixed(2) + ' ' + rss);
}

if (mode === 'speed') {
	speed(Number(process.argv[4]), process.argv[5] === 'text');
} else {
	let rest = '';
	process.stdin.setEncoding('latin1');
	process.stdin.on('data', (chunk) => {
		const lines = (rest + chunk).split('\n');
		rest = lines.pop();
		if (lines.length) process.stdout.write(lines.map((l) => answer(Buffer.from(l.trim(), 'hex'))).join('\n') + '\n');
	});
}
