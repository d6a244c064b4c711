#include "manager/support/request_author.h"

#include <fmt/format.h>

#include <string>

#include "manager/support/local_user.h"

namespace pando::manager {

zone::Author author_of(const ipc::ControlRequest& request) {
  // make_author() cuts long texts at their end, where the user stands.
  constexpr std::size_t kMaxClientName = zone::kMaxAuthorText / 2;
  const std::string user = "user " + local_user_name(request.uid);
  const std::string name =
      request.by.empty()
          ? user
          : fmt::format("API key {} ({})", request.by.substr(0, kMaxClientName), user);
  return zone::make_author(name, request.client);
}

}  // namespace pando::manager
