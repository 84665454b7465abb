"""``python -m azcp_runtime.doctor`` is azcp-doctor."""

import sys

from azcp_runtime.doctor.command import main

if __name__ == "__main__":
    sys.exit(main())
