//go:build !race

package bounded

const underRace = false
