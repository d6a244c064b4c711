#include "http/api/json_request.h"

#include <fmt/format.h>

#include "base/json_depth.h"

namespace pando::http {

using nlohmann::json;

namespace {
/// A PATCH has five levels. The library's memory for a level is many times its two octets.
constexpr int kMaxDepth = 16;
}  // namespace

Result<json> read_document(std::string_view body) {
  if (!is_json_shallow(body, kMaxDepth)) return fail(Errc::kCorrupt, "JSON is nested too deeply");
  json document = json::parse(body, nullptr, false);
  if (document.is_discarded()) return fail(Errc::kCorrupt, "malformed JSON");
  return document;
}

const json* member(const json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

Result<std::string_view> text_of(const json& object, std::string_view key) {
  const json* value = member(object, key);
  if (value == nullptr || !value->is_string())
    return fail(Errc::kInvalid, "Key '{}' not present or not a String", key);
  return std::string_view(value->get_ref<const std::string&>());
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMax = 200;
  return text.size() <= kMax ? fmt::format("'{}'", text)
                              : fmt::format("'{}...'", text.substr(0, kMax));
}

}  // namespace pando::http
