#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pando::config {

struct TextWithoutSecrets {
  std::string text;
  std::vector<std::string> names;  ///< of the keys whose secret is not there any more
};

/// The text of a configuration with `kNoSecret` in the place of each `secret` of `keys` and
/// `http.keys`. kInvalid: the text is not YAML, or a secret in it cannot be found as it is, since
/// it goes over several lines or has escapes.
Result<TextWithoutSecrets> without_secrets(std::string_view text);

/// Neither base64 nor of the form that pando-http takes: a configuration with it is refused.
inline constexpr std::string_view kNoSecret = "\"left out by pandoctl backup\"";

}  // namespace pando::config
