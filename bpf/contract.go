package bpf

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"kprobelab/bpf/contract"
	"kprobelab/internal/bounded"
)

// ErrContract: a contract is wrong, or does not go with the object.
var ErrContract = errors.New("the contract does not hold")

// SetFiles reads the files of a command line: the values of --btf, and a contract, "" for none.
func (o *Options) SetFiles(types []string, contract string) error {
	for _, text := range types {
		if err := o.AddTypes(text); err != nil {
			return err
		}
	}
	if contract == "" {
		return nil
	}
	return o.SetContract(contract)
}

// SetContract reads the contract in a file: JSON or YAML, which has JSON in it.
func (o *Options) SetContract(file string) error {
	text, err := bounded.ReadFile(file, bounded.BPFContract)
	if err != nil {
		return err
	}
	if o.Contract, err = readContract(text); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// readContract reads YAML without anchors, which could make it as large as they like.
func readContract(text []byte) (*contract.Contract, error) {
	depth := 0
	for _, t := range lexer.Tokenize(string(text)) {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return nil, fmt.Errorf("%w: line %d: anchors and aliases are not read", ErrContract, t.Position.Line)
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		}
		if depth > bounded.BPFNested {
			return nil, fmt.Errorf("%w: line %d: more than %d values in each other", ErrContract, t.Position.Line, bounded.BPFNested)
		}
	}
	var values any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrContract, firstLine(err.Error()))
	}
	if values == nil {
		return &contract.Contract{}, nil
	}
	text, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContract, err)
	}
	c, err := contract.Read(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContract, err)
	}
	return c, nil
}
