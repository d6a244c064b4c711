#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "config/settings/settings.h"

/// Scalars of the configuration: text → value. No YAML here; error messages tell the valid form.
namespace pando::config {

inline constexpr std::pair<std::string_view, LogLevel> kLogLevels[] = {
    {"trace", LogLevel::kTrace},     {"debug", LogLevel::kDebug}, {"info", LogLevel::kInfo},
    {"warning", LogLevel::kWarning}, {"error", LogLevel::kError}, {"off", LogLevel::kOff}};

inline constexpr std::pair<std::string_view, HttpKey::Role> kHttpRoles[] = {
    {"read", HttpKey::Role::kRead},
    {"write", HttpKey::Role::kWrite},
    {"admin", HttpKey::Role::kAdmin}};

Result<bool> parse_bool(std::string_view text);  ///< true, false, yes, no, on, off
Result<std::uint64_t> parse_number(std::string_view text, std::uint64_t min, std::uint64_t max);

/// Bytes: a whole number with B, kB, MB, GB, TB, KiB, MiB, GiB, TiB or no unit.
Result<std::uint64_t> parse_size(std::string_view text);
/// A size, or a whole number of percent, 1..100.
Result<SizeOrShare> parse_size_or_share(std::string_view text);

/// A whole number with ms, s, min, h, d(ay), w(eek) or their long forms; without a unit seconds.
Result<Duration> parse_duration(std::string_view text);

/// RFC 4648 §4 with padding. White space inside is skipped. Non-zero bits under the padding are
/// ignored (§3.5), since hand-made secrets contain them.
Result<Bytes> decode_base64(std::string_view text);

/// A host or zone name for people: ASCII presentation format; the final dot may be left out.
Result<dns::Name> parse_name(std::string_view text);

/// A word of `server.log.level`.
Result<LogLevel> parse_log_level(std::string_view text);
[[nodiscard]] std::string_view to_text(LogLevel level) noexcept;

/// ADDRESS@PORT; without @PORT the port is `default_port`.
Result<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port);

}  // namespace pando::config
