#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "config/settings/settings.h"
#include "ctl/view/output.h"
#include "zone/dump/dump_format.h"

namespace pando::ctl {

/// kExists: the manager of these settings runs, or has left a live store.
Status check_stopped(const config::Settings& settings);

/// Checks the dump in the open file and places it where the manager of these settings finds it at
/// its next start. `path` is for messages. kExists, kDenied: as load_dump() refuses.
Result<zone::DumpCounts> place_dump(const Fd& dump, const std::string& path,
                                    const config::Settings& settings, const Output& output);

/// Makes the server of the configuration at `config` start from the dump at `path`. The whole dump
/// is checked, and a copy is placed durably in the journal's folder, where the manager finds it.
/// Refused while a manager runs. Refused, too, where a live store is left: the server would
/// continue with that store. Refused where the journal has records of its own and the dump is
/// another journal's. Returns kDone or kFailed.
int load_dump(const std::string& path, const std::string& config, Output output);

}  // namespace pando::ctl
