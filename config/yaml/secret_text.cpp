#include "config/yaml/secret_text.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/secret.h"
#include "config/yaml/document.h"

namespace pando::config {

namespace {

constexpr std::size_t kSurelyASecret = 8;  ///< characters that are no word of the text by chance

struct FoundSecret {
  std::string name;
  std::string secret;
  int line;            // from 1
  std::size_t column;  // from 0
};

void find_secrets(std::optional<YamlNode> keys, std::vector<FoundSecret>& found) {
  if (!keys || !keys->is_list()) return;
  for (std::size_t i = 0; i < keys->size(); ++i) {
    const auto secret = keys->element(i).find("secret");
    const auto name = keys->element(i).find("name");
    if (secret && secret->is_scalar())
      found.push_back({std::string(name && name->is_scalar() ? name->text() : "?"),
                       std::string(secret->text()), secret->line(), secret->column()});
  }
}

std::size_t start_of_line(std::string_view text, int line) {
  std::size_t at = 0;
  for (; line > 1; --line) at = text.find('\n', at) + 1;
  return at;
}

/// Puts kNoSecret in the place of a secret and its quotes. False: the secret is spelt otherwise.
bool replace_secret(std::string& text, const FoundSecret& one) {
  const std::size_t start = start_of_line(text, one.line);
  // Columns count characters, of which the octets are at least as many.
  std::size_t at = text.find(one.secret, start + one.column);
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
  const auto document = YamlDocument::parse(result.text, YamlDocument::Behind::kIgnore);
  if (!document)
    return fail(Errc::kInvalid, "line {}: {}", document.error().line, document.error().text);
  const YamlNode root = document->root();
  find_secrets(root.find("keys"), found);
  if (const auto http = root.find("http")) find_secrets(http->find("keys"), found);
  // From the last one on, so that the columns of those before stay true.
  std::ranges::sort(found, std::ranges::greater(),
                    [](const auto& one) { return std::pair(one.line, one.column); });
  for (const FoundSecret& one : found) {
    result.names.push_back(one.name);
    if (!one.secret.empty() && !replace_secret(result.text, one))
      return fail(Errc::kInvalid, "line {}: the secret of key {} is not on one line as it is",
                  one.line, one.name);
  }
  for (const FoundSecret& one : found)
    if (one.secret.size() >= kSurelyASecret && result.text.find(one.secret) != std::string::npos)
      return fail(Errc::kInvalid, "the secret of key {} is in the text a second time", one.name);
  std::ranges::reverse(result.names);
  return result;
}

}  // namespace pando::config
