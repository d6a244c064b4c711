#include "ipc/privileges.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/build.h"
#include "base/whole_number.h"

namespace pando::ipc {

namespace {

struct User {
  std::string name;  // empty: only a number is known
  uid_t uid = 0;
  gid_t gid = 0;
};

Result<User> find_user(const std::string& text) {
  const auto uid = whole_number<uid_t>(text);
  const passwd* entry = uid ? ::getpwuid(*uid) : ::getpwnam(text.c_str());
  if (entry != nullptr) return User{entry->pw_name, entry->pw_uid, entry->pw_gid};
  if (uid) return User{"", *uid, *uid};
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

Status set_groups(const User& user, const std::vector<std::uint32_t>& extra) {
  const int failed =
      user.name.empty() ? ::setgroups(0, nullptr) : ::initgroups(user.name.c_str(), user.gid);
  if (failed != 0) return fail_errno("setgroups");
  for (const std::uint32_t group : extra)
    if (auto added = add_group(group); !added) return added;
  if (::setresgid(user.gid, user.gid, user.gid) != 0) return fail_errno("setresgid");
  return {};
}

using CapabilitySets = std::array<__user_cap_data_struct, 2>;

Result<CapabilitySets> capability_sets() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  CapabilitySets sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return fail_errno("capget");
  return sets;
}

bool has_capability(unsigned capability) {
  const auto sets = capability_sets();
  return sets && ((*sets)[capability / 32].effective >> (capability % 32) & 1) != 0;
}

bool is_kept(Keep keep, unsigned capability) {
  switch (capability) {
    case CAP_NET_BIND_SERVICE:
      return keep != Keep::kNothing;
    case CAP_NET_ADMIN:
    case CAP_NET_RAW:
    case CAP_BPF:
      return keep == Keep::kBindServiceAndXdp;
    default:
      return false;
  }
}

/// The bounding set decides what an exec may bring back. A process without CAP_SETPCAP cannot
/// change it; its other sets are empty then, and PR_SET_NO_NEW_PRIVS keeps them so.
void empty_bounding_set(Keep keep) {
  if (!has_capability(CAP_SETPCAP)) return;
  for (unsigned capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability)
    if (!is_kept(keep, capability)) ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
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

Result<std::vector<std::uint32_t>> groups_of(const std::string& user) {
  auto found = find_user(user);
  if (!found) return pass(found);
  if (found->name.empty()) return std::vector<std::uint32_t>{found->gid};
  std::vector<gid_t> groups(NGROUPS_MAX);
  int count = static_cast<int>(groups.size());
  if (::getgrouplist(found->name.c_str(), found->gid, groups.data(), &count) < 0)
    return fail(Errc::kFull, "user '{}' has too many groups", user);
  return std::vector<std::uint32_t>(groups.begin(), groups.begin() + count);
}

bool may_become_another_user() { return has_capability(CAP_SETUID) && has_capability(CAP_SETGID); }

Status become_user(const std::string& user, Keep keep,
                   const std::vector<std::uint32_t>& extra_groups) {
  auto found = find_user(user);
  if (!found) return pass(found);
  if (found->uid == ::geteuid()) return {};
  if (!may_become_another_user())
    return fail(Errc::kDenied, "only root can become user '{}'", user);
  if (keep != Keep::kNothing && ::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0)
    return fail_errno("prctl(PR_SET_KEEPCAPS)");
  // While the process still has CAP_SETPCAP.
  empty_bounding_set(keep);
  if (auto groups = set_groups(*found, extra_groups); !groups) return groups;
  if (::setresuid(found->uid, found->uid, found->uid) != 0) return fail_errno("setresuid");
  if (auto dropped = drop_capabilities(keep); !dropped) return dropped;
  return verify(*found);
}

Status drop_capabilities(Keep keep) {
  empty_bounding_set(keep);
  // Ambient capabilities would come back with the next exec.
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
    return fail_errno("prctl(PR_CAP_AMBIENT)");
  auto had = capability_sets();
  if (!had) return pass(had);
  CapabilitySets sets{};
  for (unsigned capability = 0; capability < 32 * sets.size(); ++capability) {
    const std::uint32_t bit = 1U << (capability % 32);
    auto& word = sets[capability / 32];
    if (is_kept(keep, capability)) word.permitted |= (*had)[capability / 32].permitted & bit;
    word.effective = word.permitted;
  }
  // A service manager that gave none may have forbidden the call, too.
  if (std::memcmp(&sets, &*had, sizeof sets) == 0) return {};
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  if (::syscall(SYS_capset, &header, sets.data()) != 0) return fail_errno("capset");
  return {};
}

Status forbid_inspection() {
  if (!kSanitized && ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
    return fail_errno("prctl(PR_SET_DUMPABLE)");
  return {};
}

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
