#!/bin/sh
# Sets the engine up if that is needed, then becomes what was asked for.
exec "@HERE@/shoal-setup" launch @NAME@ "$@"
