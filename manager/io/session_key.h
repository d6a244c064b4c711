#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "config/settings/settings.h"

/// Secrets of session keys (`keys[].session-file`): made by the manager and kept in a file of
/// BIND's form, from which `nsupdate -l` and `nsupdate -k` read them.
namespace pando::manager {

/// Makes a secret for each session key whose file is missing or has no secret of 16 bytes or more,
/// and writes it into that file (0600). `owner`: as OwnedDirectory takes it. Returns whether a
/// secret was made. kDenied: others may write in the file's folder, or the file is not ours.
Result<bool> make_session_keys(const config::Settings& settings,
                               std::optional<std::uint32_t> owner);

/// The secret in the file of `key`. If there is none, a secret that nobody else has.
[[nodiscard]] Bytes session_secret(const config::Key& key);

}  // namespace pando::manager
