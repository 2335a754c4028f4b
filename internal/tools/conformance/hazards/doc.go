// Package hazards shows on booted kernels that hazards do what package hazard says of
// them: it draws points and their neighbours, drives them, and compares.
//
// It must not know how a hazard is found: report lists the points.
package hazards
