#include "ipc/control_json.h"

#include <algorithm>
#include <string_view>

namespace pando::ipc {

using nlohmann::json;

bool same_where_given(const json& read, const json& given) {
  if (read.type() != given.type()) return false;
  if (read.is_array())
    return std::equal(read.begin(), read.end(), given.begin(), given.end(), same_where_given);
  if (!read.is_object()) return read == given;
  const auto& members = read.items();
  return std::all_of(members.begin(), members.end(), [&given](const auto& member) {
    const auto found = given.find(member.key());
    return found == given.end() || same_where_given(member.value(), *found);
  });
}

Error json_error(const json::exception& thrown) {
  std::string_view text = thrown.what();  // "[json.exception.type_error.302] type must be ..."
  if (const auto end = text.find("] "); end != text.npos) text.remove_prefix(end + 2);
  return {Errc::kInvalid, std::string(text)};
}

}  // namespace pando::ipc
