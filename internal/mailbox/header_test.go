package mailbox

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Init's source and this package say the same numbers, and no other.
func TestHeaderAgrees(t *testing.T) {
	text, err := os.ReadFile("../../testdata/init/mailbox.h")
	require.NoError(t, err)
	got := map[string]uint64{}
	for _, m := range regexp.MustCompile(`(?m)^#define MAILBOX_(\w+)\s+(\w+)`).FindAllStringSubmatch(string(text), -1) {
		v, err := strconv.ParseUint(m[2], 0, 64)
		require.NoError(t, err, m[0])
		got[m[1]] = v
	}
	require.Equal(t, map[string]uint64{
		"ADDR": uint64(Addr), "SIZE": Size, "DATA": dataAt, "MAGIC": Magic, "VERSION": Version,
		"AT_MAGIC": atMagic, "AT_VERSION": atVersion, "AT_COMMAND": atCommand, "AT_CALL": atCall, "AT_ARGC": atArgc,
		"AT_ENVC": atEnvc, "AT_INPUT": atInput, "AT_INPUT_SIZE": atInputSize,
		"NONE": 0, "EXEC": uint64(Exec), "SPAWN": uint64(Spawn), "INSMOD": uint64(Insmod), "WRITE": uint64(Write), "READ": uint64(Read),
		"MAX_ARGS": maxArgs, "CALL": callBase, "READY": uint64(Ready), "OUT": uint64(Out), "EXIT": uint64(Exit),
	}, got)
}
