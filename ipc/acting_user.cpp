#include "ipc/acting_user.h"

#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "ipc/privileges.h"

namespace pando::ipc {

ActingUser::ActingUser(const std::string& user) : user_(user), own_group_(::getegid()) {
  const auto id = user_id(user);
  const auto group = group_id(user);
  const auto groups = groups_of(user);
  if (::geteuid() != 0 || !id || *id == 0 || !group || !groups) return;
  const int count = ::getgroups(0, nullptr);
  own_groups_.resize(static_cast<std::size_t>(std::max(count, 0)));
  if (count > 0 && ::getgroups(count, own_groups_.data()) != count) return;
  acts_ = ::setgroups(groups->size(), groups->data()) == 0 && ::setegid(*group) == 0 &&
          ::seteuid(*id) == 0;
  if (!acts_ &&
      (::setegid(own_group_) != 0 || ::setgroups(own_groups_.size(), own_groups_.data()) != 0))
    std::abort();
}

ActingUser::~ActingUser() {
  if (!acts_) return;
  if (::seteuid(0) != 0 || ::setegid(own_group_) != 0 ||
      ::setgroups(own_groups_.size(), own_groups_.data()) != 0)
    std::abort();
}

}  // namespace pando::ipc
