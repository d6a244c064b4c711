#include "base/datagram.h"

#include <cstring>

namespace pando {

std::optional<IpAddress> find_destination(const msghdr& header) noexcept {
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr;
       c = CMSG_NXTHDR(const_cast<msghdr*>(&header), c)) {
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(c), sizeof info);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr = info.ipi_addr;
      return IpAddress::from_sockaddr(reinterpret_cast<sockaddr*>(&address));
    }
    if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      std::memcpy(&info, CMSG_DATA(c), sizeof info);
      IpAddress address;
      std::memcpy(address.octets.data(), &info.ipi6_addr, address.octets.size());
      if (address.is_link_local()) address.set_scope(info.ipi6_ifindex);
      return address;
    }
  }
  return std::nullopt;
}

void set_source(msghdr& header, SourceControl& control, const IpAddress& source) noexcept {
  header.msg_control = control.octets.data();
  header.msg_controllen = CMSG_SPACE(sizeof(in6_pktinfo));
  cmsghdr* c = CMSG_FIRSTHDR(&header);
  if (source.is_v4()) {
    in_pktinfo info{};
    std::memcpy(&info.ipi_spec_dst, source.octets.data() + 12, 4);
    c->cmsg_level = IPPROTO_IP;
    c->cmsg_type = IP_PKTINFO;
    c->cmsg_len = CMSG_LEN(sizeof info);
    std::memcpy(CMSG_DATA(c), &info, sizeof info);
    header.msg_controllen = CMSG_SPACE(sizeof info);
    return;
  }
  in6_pktinfo info{};
  const IpAddress bare = source.without_scope();
  std::memcpy(&info.ipi6_addr, bare.octets.data(), 16);
  info.ipi6_ifindex = source.scope();
  c->cmsg_level = IPPROTO_IPV6;
  c->cmsg_type = IPV6_PKTINFO;
  c->cmsg_len = CMSG_LEN(sizeof info);
  std::memcpy(CMSG_DATA(c), &info, sizeof info);
}

bool send_datagram(int socket, ByteView message, const Endpoint& to,
                   const std::optional<IpAddress>& source) noexcept {
  sockaddr_storage address;
  const socklen_t length = to.to_sockaddr(address);
  iovec part{const_cast<std::uint8_t*>(message.data()), message.size()};
  SourceControl control{};
  msghdr header{};
  header.msg_name = &address;
  header.msg_namelen = length;
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (source) set_source(header, control, *source);
  return ::sendmsg(socket, &header, MSG_DONTWAIT) >= 0;
}

}  // namespace pando
