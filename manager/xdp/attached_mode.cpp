#include "manager/xdp/attached_mode.h"

#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "base/fd.h"

namespace pando::manager {

namespace {

/// The attribute `type` in a list of them; null if there is none.
const rtattr* find_attribute(const rtattr* first, int octets, unsigned short type) {
  for (const rtattr* at = first; RTA_OK(at, octets); at = RTA_NEXT(at, octets))
    if ((at->rta_type & NLA_TYPE_MASK) == type) return at;
  return nullptr;
}

std::uint8_t attached_number(const nlmsghdr& message) {
  if (message.nlmsg_type != RTM_NEWLINK) return XDP_ATTACHED_NONE;
  auto* const link = static_cast<ifinfomsg*>(NLMSG_DATA(&message));
  const rtattr* const xdp =
      find_attribute(IFLA_RTA(link), static_cast<int>(IFLA_PAYLOAD(&message)), IFLA_XDP);
  if (xdp == nullptr) return XDP_ATTACHED_NONE;
  const rtattr* const attached = find_attribute(static_cast<const rtattr*>(RTA_DATA(xdp)),
                                                static_cast<int>(RTA_PAYLOAD(xdp)),
                                                IFLA_XDP_ATTACHED);
  return attached == nullptr ? std::uint8_t{XDP_ATTACHED_NONE}
                             : *static_cast<const std::uint8_t*>(RTA_DATA(attached));
}

}  // namespace

std::string attached_xdp_mode(int interface) {
  const Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return {};
  struct {
    nlmsghdr header;
    ifinfomsg link;
  } request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = RTM_GETLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.link.ifi_family = AF_UNSPEC;
  request.link.ifi_index = interface;
  if (::send(socket.get(), &request, sizeof request, 0) < 0) return {};
  alignas(nlmsghdr) std::array<std::uint8_t, 32768> answer{};
  const auto octets = ::recv(socket.get(), answer.data(), answer.size(), 0);
  auto left = static_cast<unsigned>(octets < 0 ? 0 : octets);
  const auto* const message = reinterpret_cast<const nlmsghdr*>(answer.data());
  if (!NLMSG_OK(message, left)) return {};
  switch (attached_number(*message)) {
    case XDP_ATTACHED_DRV:
    case XDP_ATTACHED_HW:
      return "native";
    case XDP_ATTACHED_SKB:
      return "generic";
    default:
      return {};
  }
}

}  // namespace pando::manager
