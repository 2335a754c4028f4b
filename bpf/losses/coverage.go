package losses

type coverage struct{}

func newCoverage(*Watch) *coverage  { return &coverage{} }
func (c *coverage) loaded(*program) {}
func (c *coverage) freed(*program)  {}
