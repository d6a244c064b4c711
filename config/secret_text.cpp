#include "config/secret_text.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "base/secret.h"

namespace pando::config {

namespace {

constexpr std::size_t kSurelyASecret = 8;  ///< characters that are no word of the text by chance

struct FoundSecret {
  std::string name;
  std::string secret;
  YAML::Mark mark;
};

void find_secrets(const YAML::Node& keys, std::vector<FoundSecret>& found) {
  if (!keys || !keys.IsSequence()) return;
  for (const YAML::Node& key : keys) {
    if (!key.IsMap()) continue;
    const YAML::Node secret = key["secret"];
    const YAML::Node name = key["name"];
    if (secret && secret.IsScalar())
      found.push_back({name && name.IsScalar() ? name.Scalar() : "?", secret.Scalar(),
                       secret.Mark()});
  }
}

std::size_t start_of_line(std::string_view text, int line) {
  std::size_t at = 0;
  for (; line > 0; --line) at = text.find('\n', at) + 1;
  return at;
}

/// Puts kNoSecret in the place of a secret and its quotes. False: the secret is spelt otherwise.
bool replace_secret(std::string& text, const FoundSecret& one) {
  const std::size_t start = start_of_line(text, one.mark.line);
  // Columns count characters, of which the octets are at least as many.
  std::size_t at = text.find(one.secret, start + static_cast<std::size_t>(one.mark.column));
  if (at == std::string::npos || at > text.find('\n', start)) return false;
  std::size_t end = at + one.secret.size();
  const bool quoted = at > 0 && end < text.size() && text[at - 1] == text[end] &&
                      (text[end] == '"' || text[end] == '\'');
  if (quoted) --at, ++end;
  text.replace(at, end - at, kNoSecret);
  return true;
}

}  // namespace

Result<TextWithoutSecrets> without_secrets(std::string_view text) {
  const WipeFreed wipe_freed;
  TextWithoutSecrets result{std::string(text), {}};
  std::vector<FoundSecret> found;
  try {
    const YAML::Node document = YAML::Load(result.text);
    if (!document.IsMap()) return result;
    find_secrets(document["keys"], found);
    if (const YAML::Node http = document["http"]; http && http.IsMap())
      find_secrets(http["keys"], found);
  } catch (const YAML::Exception& error) {
    return fail(Errc::kInvalid, "line {}: {}", error.mark.line + 1, error.msg);
  }
  // From the last one on, so that the columns of those before stay true.
  std::ranges::sort(found, std::ranges::greater(), [](const auto& one) { return one.mark.pos; });
  for (const FoundSecret& one : found) {
    result.names.push_back(one.name);
    if (!one.secret.empty() && !replace_secret(result.text, one))
      return fail(Errc::kInvalid, "line {}: the secret of key {} is not on one line as it is",
                  one.mark.line + 1, one.name);
  }
  for (const FoundSecret& one : found)
    if (one.secret.size() >= kSurelyASecret && result.text.find(one.secret) != std::string::npos)
      return fail(Errc::kInvalid, "the secret of key {} is in the text a second time", one.name);
  std::ranges::reverse(result.names);
  return result;
}

}  // namespace pando::config
