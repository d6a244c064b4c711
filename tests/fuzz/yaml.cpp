#include <cstdlib>

#include "config/yaml/document.h"

namespace {

using pando::config::YamlDocument;
using pando::config::YamlNode;

constexpr int kMaxYamlDepth = 24;

/// Walks over both documents together. Aliases could make that endless.
class Comparison {
 public:
  void compare(YamlNode a, YamlNode b, int depth) {
    if (a.kind() != b.kind() || a.text() != b.text() || a.tag() != b.tag() ||
        a.line() != b.line() || a.column() != b.column() || a.size() != b.size())
      std::abort();
    if (depth == kMaxYamlDepth) return;
    for (std::size_t i = 0; i < a.size() && nodes_left_ > 0; ++i) {
      --nodes_left_;
      if (a.is_mapping()) compare(a.key(i), b.key(i), depth + 1);
      compare(a.is_list() ? a.element(i) : a.value(i), b.is_list() ? b.element(i) : b.value(i),
              depth + 1);
    }
  }

 private:
  int nodes_left_ = 20'000;
};

}  // namespace

// Elements that are read without the parser are what the parser makes of them, errors included.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto quick = YamlDocument::parse(text, YamlDocument::Behind::kFind);
  const auto slow = YamlDocument::parse(text, YamlDocument::Behind::kFind,
                                        YamlDocument::Elements::kByParser);
  if (quick.has_value() != slow.has_value()) std::abort();
  if (!quick) {
    if (quick.error().line != slow.error().line || quick.error().text != slow.error().text)
      std::abort();
    return 0;
  }
  if (quick->behind_line() != slow->behind_line()) std::abort();
  Comparison().compare(quick->root(), slow->root(), 0);
  return 0;
}
