#pragma once

// LibTorch's header includes this file and uses nothing of it.
