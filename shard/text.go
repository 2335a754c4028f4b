package shard

import (
	"encoding/json"
	"unicode/utf8"
)

// Text is bytes that are nearly always UTF-8: a string in JSON, or else an object with the bytes in base64.
type Text []byte

type notText struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.Valid(t) {
		return json.Marshal(string(t))
	}
	return json.Marshal(notText{t})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err == nil {
		*t = Text(s)
		return nil
	}
	var n notText
	err := json.Unmarshal(b, &n)
	*t = n.Base64
	return err
}
