// Package ci tests the shell in ci/: the steps of the GitHub action, the jobs of the GitLab template and the plain script, each
// in the environment of its runner.
package ci
