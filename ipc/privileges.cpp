#include "ipc/privileges.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <vector>

#include "base/build.h"

namespace pando::ipc {

namespace {

struct User {
  std::string name;  // empty: only a number is known
  uid_t uid = 0;
  gid_t gid = 0;
};

Result<User> find_user(const std::string& text) {
  uid_t uid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), uid);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  const passwd* entry = is_number ? ::getpwuid(uid) : ::getpwnam(text.c_str());
  if (entry != nullptr) return User{entry->pw_name, entry->pw_uid, entry->pw_gid};
  if (is_number) return User{"", uid, uid};
  return fail(Errc::kNotFound, "no user '{}'", text);
}

Status add_group(gid_t group) {
  std::vector<gid_t> groups(NGROUPS_MAX);
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  if (count < 0) return fail_errno("getgroups");
  groups.resize(static_cast<std::size_t>(count));
  if (std::find(groups.begin(), groups.end(), group) != groups.end()) return {};
  groups.push_back(group);
  if (::setgroups(groups.size(), groups.data()) != 0) return fail_errno("setgroups");
  return {};
}

Status set_groups(const User& user, std::optional<std::uint32_t> extra) {
  const int failed =
      user.name.empty() ? ::setgroups(0, nullptr) : ::initgroups(user.name.c_str(), user.gid);
  if (failed != 0) return fail_errno("setgroups");
  if (extra) {
    if (auto added = add_group(*extra); !added) return added;
  }
  if (::setresgid(user.gid, user.gid, user.gid) != 0) return fail_errno("setresgid");
  return {};
}

Status keep_only_bind_service() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  data[0].effective = data[0].permitted = 1U << CAP_NET_BIND_SERVICE;
  if (::syscall(SYS_capset, &header, data) != 0) return fail_errno("capset");
  return {};
}

/// A way back to root would make the drop worthless.
Status verify(const User& user) {
  uid_t real = 0, effective = 0, saved = 0;
  if (::getresuid(&real, &effective, &saved) != 0) return fail_errno("getresuid");
  if (real != user.uid || effective != user.uid || saved != user.uid)
    return fail(Errc::kDenied, "could not become user {}", user.uid);
  if (user.uid != 0 && ::setuid(0) == 0) return fail(Errc::kDenied, "root could be regained");
  return {};
}

}  // namespace

Result<std::uint32_t> user_id(const std::string& user) {
  auto found = find_user(user);
  if (!found) return pass(found);
  return found->uid;
}

Result<std::uint32_t> group_id(const std::string& user) {
  auto found = find_user(user);
  if (!found) return pass(found);
  return found->gid;
}

Status become_user(const std::string& user, Keep keep, std::optional<std::uint32_t> extra_group) {
  auto found = find_user(user);
  if (!found) return pass(found);
  if (found->uid == ::geteuid()) return {};
  if (::geteuid() != 0) return fail(Errc::kDenied, "only root can become user '{}'", user);
  if (keep == Keep::kBindService && ::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0)
    return fail_errno("prctl(PR_SET_KEEPCAPS)");
  if (auto groups = set_groups(*found, extra_group); !groups) return groups;
  if (::setresuid(found->uid, found->uid, found->uid) != 0) return fail_errno("setresuid");
  if (keep == Keep::kBindService) {
    if (auto kept = keep_only_bind_service(); !kept) return kept;
  }
  return verify(*found);
}

Status forbid_inspection() {
  if (!kSanitized && ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
    return fail_errno("prctl(PR_SET_DUMPABLE)");
  return {};
}

}  // namespace pando::ipc
