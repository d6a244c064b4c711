#include "manager/xdp/redirect_program.h"

#include <linux/if_ether.h>
#include <netinet/in.h>

#include <cstddef>
#include <cstring>

#include "manager/xdp/bpf_assembler.h"

namespace pando::manager {

namespace {

using Register = BpfAssembler::Register;
using Width = BpfAssembler::Width;

constexpr Register kContext = Register::r6;
constexpr Register kFrame = Register::r2;  ///< the frame; of a tagged one 4 octets after it
constexpr Register kEnd = Register::r3;
constexpr Register kType = Register::r5;
constexpr Register kVlan = Register::r7;
constexpr Register kStack = Register::r10;

constexpr std::int16_t kEthernet = 14;
constexpr std::int16_t kIpv4 = 20;
constexpr std::int16_t kIpv6 = 40;
constexpr std::int16_t kUdp = 8;
constexpr std::int16_t kDns = 12;
/// Places of the key on the stack.
constexpr std::int16_t kKeyPlace = -24;
constexpr std::int16_t kKeyPort = kKeyPlace + 16;
constexpr std::int16_t kKeyVlan = kKeyPlace + 18;

/// A constant as a load of 16 bits in the network's order gives it.
std::uint32_t wire16(std::uint16_t value) { return __builtin_bswap16(value); }

/// One program; its parts share labels.
class RedirectWriter {
 public:
  explicit RedirectWriter(const RedirectParts& parts)
      : parts_(parts), pass_(out_.make_label()), lookup_(out_.make_label()) {}

  std::vector<bpf_insn> write() {
    const auto v4 = out_.make_label();
    const auto v6 = out_.make_label();
    load_frame();
    check_destination();
    read_tag();
    out_.jump_if_equal(kType, wire16(ETH_P_IP), v4);
    out_.jump_if_equal(kType, wire16(ETH_P_IPV6), v6);
    out_.jump(pass_);
    out_.bind(v4);
    check_ipv4();
    out_.jump(lookup_);
    out_.bind(v6);
    check_ipv6();
    out_.bind(lookup_);
    look_up_and_redirect();
    out_.bind(pass_);
    out_.move(Register::r0, XDP_PASS);
    out_.exit();
    return out_.instructions();
  }

 private:
  /// Passes the frame unless it has `octets` octets after kFrame.
  void need(std::int32_t octets) {
    out_.move(Register::r4, kFrame);
    out_.add(Register::r4, octets);
    out_.jump_if_greater(Register::r4, kEnd, pass_);
  }

  void load_frame() {
    out_.move(kContext, Register::r1);
    out_.load(Width::k32, kFrame, kContext, offsetof(xdp_md, data));
    out_.load(Width::k32, kEnd, kContext, offsetof(xdp_md, data_end));
    out_.move(Register::r4, kFrame);
    out_.add(Register::r4, kMaxXdpFrame + 1);
    out_.jump_if_at_most(Register::r4, kEnd, pass_);
    need(kEthernet);
  }

  /// Frames for other hosts reach an interface that listens to all, and a group's every member.
  void check_destination() {
    std::uint32_t first = 0;
    std::uint16_t last = 0;
    std::memcpy(&first, parts_.mac.data(), sizeof first);
    std::memcpy(&last, parts_.mac.data() + sizeof first, sizeof last);
    out_.load(Width::k32, kType, kFrame, 0);
    out_.jump_if_not_equal(kType, first, pass_);
    out_.load(Width::k16, kType, kFrame, 4);
    out_.jump_if_not_equal(kType, last, pass_);
  }

  void read_tag() {
    const auto untagged = out_.make_label();
    out_.move(kVlan, 0);
    out_.load(Width::k16, kType, kFrame, 12);
    out_.jump_if_not_equal(kType, wire16(ETH_P_8021Q), untagged);
    need(kEthernet + 4);
    out_.load(Width::k16, kVlan, kFrame, kEthernet);
    out_.swap16(kVlan);
    out_.and_(kVlan, 0x0FFF);
    out_.jump_if_equal(kVlan, 0, pass_);  // a priority without a VLAN
    out_.load(Width::k16, kType, kFrame, kEthernet + 2);
    out_.add(kFrame, 4);
    out_.bind(untagged);
  }

  void check_ipv4() {
    need(kEthernet + kIpv4 + kUdp + kDns);
    load_and_compare(Width::k8, kEthernet, 0x45);
    out_.load(Width::k16, kType, kFrame, kEthernet + 6);  // fragment: offset or "more"
    out_.and_(kType, static_cast<std::int32_t>(wire16(0x3FFF)));
    out_.jump_if_not_equal(kType, 0, pass_);
    load_and_compare(Width::k8, kEthernet + 9, IPPROTO_UDP);
    out_.store(Width::k64, kStack, kKeyPlace, 0);
    out_.store(Width::k32, kStack, kKeyPlace + 8, static_cast<std::int32_t>(0xFFFF0000));
    copy(Width::k32, kEthernet + 16, kKeyPlace + 12);
    check_udp(kEthernet + kIpv4);
  }

  void check_ipv6() {
    need(kEthernet + kIpv6 + kUdp + kDns);
    out_.load(Width::k8, kType, kFrame, kEthernet);
    out_.and_(kType, 0xF0);
    out_.jump_if_not_equal(kType, 0x60, pass_);
    load_and_compare(Width::k8, kEthernet + 6, IPPROTO_UDP);
    for (std::int16_t part = 0; part < 16; part = static_cast<std::int16_t>(part + 4))
      copy(Width::k32, static_cast<std::int16_t>(kEthernet + 24 + part),
           static_cast<std::int16_t>(kKeyPlace + part));
    check_udp(kEthernet + kIpv6);
  }

  void check_udp(std::int16_t udp) {
    copy(Width::k16, static_cast<std::int16_t>(udp + 2), kKeyPort);
    out_.store(Width::k16, kStack, kKeyVlan, kVlan);
    out_.load(Width::k8, kType, kFrame, static_cast<std::int16_t>(udp + kUdp + 2));
    out_.and_(kType, 0xF8);  // QR and OPCODE (RFC 1035 §4.1.1)
    out_.jump_if_not_equal(kType, 0, pass_);
  }

  void load_and_compare(Width width, std::int16_t offset, std::uint32_t value) {
    out_.load(width, kType, kFrame, offset);
    out_.jump_if_not_equal(kType, value, pass_);
  }

  void copy(Width width, std::int16_t from, std::int16_t to_stack) {
    out_.load(width, kType, kFrame, from);
    out_.store(width, kStack, to_stack, kType);
  }

  void look_up_and_redirect() {
    out_.load_map(Register::r1, parts_.addresses);
    out_.move(Register::r2, kStack);
    out_.add(Register::r2, kKeyPlace);
    out_.call(BPF_FUNC_map_lookup_elem);
    out_.jump_if_null(Register::r0, pass_);
    out_.load_map(Register::r1, parts_.sockets);
    out_.load(Width::k32, Register::r2, kContext, offsetof(xdp_md, rx_queue_index));
    out_.move(Register::r3, XDP_PASS);  // for a queue without a socket
    out_.call(BPF_FUNC_redirect_map);
    out_.exit();
  }

  const RedirectParts& parts_;
  BpfAssembler out_;
  BpfAssembler::Label pass_;
  BpfAssembler::Label lookup_;
};

}  // namespace

std::vector<bpf_insn> redirect_program(const RedirectParts& parts) {
  return RedirectWriter(parts).write();
}

}  // namespace pando::manager
