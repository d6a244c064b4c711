#pragma once

#include <string>

#include "ctl/output.h"

namespace pando::ctl {

/// Has the server of the configuration at `config` start on the dump at `path`: checks all of it
/// and puts a copy where the manager looks for one, in the journal's folder, durably. Refused while
/// a manager runs, where a live store is left (the server would go on with that), and where the
/// journal has records of its own and the dump is of another one. kDone or kFailed.
int load_dump(const std::string& path, const std::string& config, Output output);

}  // namespace pando::ctl
