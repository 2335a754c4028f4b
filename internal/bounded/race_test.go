//go:build race

package bounded

const underRace = true
