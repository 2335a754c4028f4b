package main

import (
	"encoding/json"
	"errors"

	"kprobelab/internal/page"
	"kprobelab/internal/page/web"
)

// planting registers the probe of the first lesson in its machine, and returns the bytes before and after.
func planting() (*web.Planting, error) {
	p := &page.Page{}
	before, err := watched(p, "")
	if err != nil {
		return nil, err
	}
	after, err := watched(p, "m")
	if err != nil {
		return nil, err
	}
	made := &web.Planting{Place: after.Strips[0].Place}
	for i, c := range after.Strips[0].Cells {
		made.Before, made.After = append(made.Before, before.Strips[0].Cells[i].Value), append(made.After, c.Value)
	}
	for _, code := range after.Code {
		for _, row := range code.Rows {
			switch {
			case code.Kind == "function" && row.Probe:
				made.Insn, made.Copied = row.Was, len(row.Bytes)
			case code.Kind == "slot":
				for _, c := range row.Bytes {
					made.Slot = append(made.Slot, c.Value)
				}
			}
		}
	}
	if made.Insn == "" || len(made.Slot) < made.Copied {
		return nil, errors.New("the first lesson's probe has no int3 and slot")
	}
	return made, nil
}

// watched is the machine of the first lesson after a schedule.
func watched(p *page.Page, schedule string) (*page.View, error) {
	var lessons []page.Lesson
	if err := json.Unmarshal([]byte(p.Answer(`{"do":"lessons"}`, nil)), &lessons); err != nil {
		return nil, err
	}
	q, err := json.Marshal(struct {
		page.Scenario
		Do       string `json:"do"`
		Schedule string `json:"schedule"`
		Sub      int    `json:"sub"`
	}{lessons[0].Scenario, "watch", schedule, -1})
	if err != nil {
		return nil, err
	}
	var v page.View
	if err := json.Unmarshal([]byte(p.Answer(string(q), nil)), &v); err != nil {
		return nil, err
	}
	if len(v.Strips) == 0 {
		return nil, errors.New("the first lesson has no probe")
	}
	return &v, nil
}
