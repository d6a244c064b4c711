#include "manager/xdp/redirect_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "manager/xdp/bpf_assembler.h"

namespace pando::manager {
namespace redirect_program_test {

constexpr int kSockets = 71;
constexpr int kAddresses = 72;
constexpr std::uint64_t kRedirected = 4711;  ///< what the helper gives
const MacAddress kMac{2, 0, 0, 0, 0, 1};

/// The instructions that the program uses, with memory as the kernel's verifier wants it: each
/// access must be inside of context, frame or stack. Addresses are numbers of this process.
class Machine {
 public:
  Machine(std::vector<bpf_insn> program, std::set<XdpAddressKey> keys)
      : program_(std::move(program)), keys_(std::move(keys)) {}

  /// What the program returns for the frame.
  std::uint64_t run(const Bytes& frame) {
    frame_ = &frame;
    registers_ = {};
    registers_[1] = kContext;
    registers_[10] = kStack + stack_.size();
    for (std::size_t at = 0, steps = 0; steps < 1000; ++steps) {
      const bpf_insn& one = program_.at(at);
      if (one.code == (BPF_JMP | BPF_EXIT)) return registers_[0];
      at += 1 + step(one);
    }
    ADD_FAILURE() << "no end";
    return 0;
  }

 private:
  static constexpr std::uint64_t kContext = 0x1000;
  static constexpr std::uint64_t kFrame = 0x10000;
  static constexpr std::uint64_t kStack = 0x80000000;

  /// Instructions to skip.
  std::size_t step(const bpf_insn& one) {
    const std::uint64_t value = (one.code & BPF_X) != 0 ? registers_[one.src_reg]
                                                        : static_cast<std::uint64_t>(
                                                              std::int64_t{one.imm});
    std::uint64_t& to = registers_.at(one.dst_reg);
    switch (one.code & 7) {
      case BPF_ALU64:
        to = calculate(one.code & 0xF0, to, value);
        return 0;
      case BPF_ALU:
        EXPECT_EQ(one.code, BPF_ALU | BPF_END | BPF_TO_BE);
        to = __builtin_bswap16(static_cast<std::uint16_t>(to));
        return 0;
      case BPF_LD:  // a map, in two words
        to = static_cast<std::uint64_t>(one.imm);
        return 1;
      case BPF_LDX:
        to = load(registers_.at(one.src_reg) + static_cast<std::uint64_t>(std::int64_t{one.off}),
                  octets_of(one));
        return 0;
      case BPF_ST:
      case BPF_STX:
        store(to + static_cast<std::uint64_t>(std::int64_t{one.off}), octets_of(one),
              (one.code & 7) == BPF_ST ? static_cast<std::uint64_t>(std::int64_t{one.imm})
                                       : registers_.at(one.src_reg));
        return 0;
      case BPF_JMP32:
        return jumps(one.code & 0xF0, static_cast<std::uint32_t>(to),
                     static_cast<std::uint32_t>(value))
                   ? static_cast<std::size_t>(one.off)
                   : 0;
      default:
        if (one.code == (BPF_JMP | BPF_CALL)) return call(one.imm), 0;
        return jumps(one.code & 0xF0, to, value) ? static_cast<std::size_t>(one.off) : 0;
    }
  }

  static std::uint64_t calculate(int operation, std::uint64_t a, std::uint64_t b) {
    if (operation == BPF_ADD) return a + b;
    if (operation == BPF_AND) return a & b;
    EXPECT_EQ(operation, BPF_MOV);
    return b;
  }

  static bool jumps(int operation, std::uint64_t a, std::uint64_t b) {
    switch (operation) {
      case BPF_JA:
        return true;
      case BPF_JEQ:
        return a == b;
      case BPF_JNE:
        return a != b;
      case BPF_JGT:
        return a > b;
      default:
        EXPECT_EQ(operation, BPF_JLE);
        return a <= b;
    }
  }

  static std::size_t octets_of(const bpf_insn& one) {
    switch (one.code & 0x18) {
      case BPF_B:
        return 1;
      case BPF_H:
        return 2;
      case BPF_W:
        return 4;
      default:
        return 8;
    }
  }

  std::uint64_t load(std::uint64_t at, std::size_t octets) {
    if (at < kFrame) return context(at - kContext);
    std::uint64_t value = 0;
    if (at >= kStack) {
      EXPECT_LE(at + octets, kStack + stack_.size());
      std::memcpy(&value, stack_.data() + (at - kStack), octets);
    } else if (at + octets > kFrame + frame_->size()) {
      ADD_FAILURE() << "a read behind the frame, at " << at - kFrame << " of " << frame_->size();
    } else {
      std::memcpy(&value, frame_->data() + (at - kFrame), octets);
    }
    return value;
  }

  std::uint64_t context(std::uint64_t offset) {
    if (offset == offsetof(xdp_md, data)) return kFrame;
    if (offset == offsetof(xdp_md, data_end)) return kFrame + frame_->size();
    EXPECT_EQ(offset, offsetof(xdp_md, rx_queue_index));
    return 5;
  }

  void store(std::uint64_t at, std::size_t octets, std::uint64_t value) {
    ASSERT_TRUE(at >= kStack && at + octets <= kStack + stack_.size());
    std::memcpy(stack_.data() + (at - kStack), &value, octets);
  }

  void call(std::int32_t helper) {
    if (helper == BPF_FUNC_map_lookup_elem) {
      EXPECT_EQ(registers_[1], kAddresses);
      XdpAddressKey key{};
      std::memcpy(&key, stack_.data() + (registers_[2] - kStack), sizeof key);
      registers_[0] = keys_.contains(key) ? 1 : 0;
    } else {
      EXPECT_EQ(helper, BPF_FUNC_redirect_map);
      EXPECT_EQ(registers_[1], kSockets);
      EXPECT_EQ(registers_[2], 5U) << "the queue that the frame came by";
      EXPECT_EQ(registers_[3], XDP_PASS) << "for a queue without a socket";
      registers_[0] = kRedirected;
    }
    for (std::size_t i = 1; i <= 5; ++i) registers_[i] = 0xDEAD;  // a call leaves nothing there
  }

  std::vector<bpf_insn> program_;
  std::set<XdpAddressKey> keys_;
  const Bytes* frame_ = nullptr;
  std::array<std::uint64_t, 11> registers_{};
  std::array<std::uint8_t, 64> stack_{};
};

XdpAddressKey key(const char* address, std::uint16_t vlan = 0) {
  XdpAddressKey made{IpAddress::from_text(address).value().octets, {}, vlan};
  store_be16(made.port.data(), 53);
  return made;
}

std::set<XdpAddressKey> served() {
  return {key("192.0.2.1"), key("2001:db8::1"), key("198.51.100.1", 7), key("2001:db8:7::1", 7)};
}

Machine machine() { return {redirect_program({kSockets, kAddresses, kMac}), served()}; }

/// Headers as octets, so that no writer of frames can be wrong in the same way.
Bytes frame_to(const char* address, std::uint16_t vlan = 0) {
  const IpAddress to = IpAddress::from_text(address).value();
  Bytes frame(kMac.begin(), kMac.end());
  append(frame, Bytes{2, 0, 0, 0, 0, 2});
  if (vlan != 0) {
    append_be16(frame, 0x8100);
    append_be16(frame, vlan);
  }
  const Bytes dns{0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1};
  const auto udp = static_cast<std::uint16_t>(8 + dns.size());
  if (to.is_v4()) {
    append(frame, Bytes{0x08, 0x00, 0x45, 0, 0, static_cast<std::uint8_t>(20 + udp), 0, 1, 0x40, 0,
                        64, 17, 0, 0, 192, 0, 2, 2});
    append(frame, ByteView(to.octets).subspan(12));
  } else {
    append(frame, Bytes{0x86, 0xDD, 0x60, 0, 0, 0, 0, static_cast<std::uint8_t>(udp), 17, 64});
    append(frame, IpAddress::from_text("2001:db8::2").value().octets);
    append(frame, to.octets);
  }
  append(frame, Bytes{0x10, 0x92, 0, 53, 0, static_cast<std::uint8_t>(udp), 0, 0});
  append(frame, dns);
  return frame;
}

TEST(RedirectProgram, QueriesToServedAddressesAreRedirected) {
  for (const auto& [address, vlan] : std::vector<std::pair<const char*, std::uint16_t>>{
           {"192.0.2.1", 0}, {"2001:db8::1", 0}, {"198.51.100.1", 7}, {"2001:db8:7::1", 7}})
    EXPECT_EQ(machine().run(frame_to(address, vlan)), kRedirected) << address;
  EXPECT_EQ(machine().run(frame_to("198.51.100.1", 0xE007)), kRedirected) << "with a priority";
}

TEST(RedirectProgram, OtherDestinationsPass) {
  for (const auto& [address, vlan] : std::vector<std::pair<const char*, std::uint16_t>>{
           {"192.0.2.9", 0}, {"2001:db8::9", 0}, {"192.0.2.1", 7}, {"198.51.100.1", 0},
           {"198.51.100.1", 8}, {"2001:db8::1", 7}, {"192.0.2.1", 0xE000}})
    EXPECT_EQ(machine().run(frame_to(address, vlan)), XDP_PASS) << address << " " << vlan;
}

TEST(RedirectProgram, AnyChangeOfWhatItLooksAtMakesAFramePass) {
  for (const char* address : {"192.0.2.1", "2001:db8::1"}) {
    const Bytes good = frame_to(address);
    const bool v4 = good[12] == 0x08;
    const std::size_t udp = v4 ? 34 : 54;
    std::vector<std::pair<std::size_t, std::uint8_t>> changes{
        {0, 0x03},        {5, 0x77},        {12, 0x09},       {13, 0x06},
        {udp + 3, 54},    {udp + 2, 1},     {udp + 10, 0x80}, {udp + 10, 0x28},
        {udp + 10, 0x20}, {udp + 10, 0x08}, {14, v4 ? 0x46 : 0x40}};
    if (v4)
      changes.insert(changes.end(), {{20, 0x20}, {21, 1}, {23, 6}});
    else
      changes.insert(changes.end(), {{20, 0}, {20, 6}, {20, 44}});
    for (const auto& [at, value] : changes) {
      Bytes frame = good;
      frame[at] = value;
      EXPECT_EQ(machine().run(frame), XDP_PASS) << address << " octet " << at;
    }
  }
}

TEST(RedirectProgram, FlagsOfAQueryAndDontFragmentDoNotMatter) {
  Bytes frame = frame_to("192.0.2.1");
  frame[20] = 0x40;
  frame[44] = 0x07;  // AA, TC and RD
  EXPECT_EQ(machine().run(frame), kRedirected);
}

TEST(RedirectProgram, ATruncatedFramePassesAndIsReadToItsEndAtMost) {
  for (const char* address : {"192.0.2.1", "2001:db8::1"})
    for (const std::uint16_t vlan : std::vector<std::uint16_t>{0, 7}) {
      const Bytes whole = frame_to(address, vlan);
      const std::size_t needed = whole.size() - 5;  // the question is not looked at
      for (std::size_t size = 14; size < needed; ++size)
        EXPECT_EQ(machine().run(Bytes(whole.begin(), whole.begin() + static_cast<long>(size))),
                  XDP_PASS);
    }
}

TEST(RedirectProgram, ALongFramePasses) {
  Bytes frame = frame_to("192.0.2.1");
  frame.resize(kMaxXdpFrame);
  EXPECT_EQ(machine().run(frame), kRedirected);
  frame.resize(kMaxXdpFrame + 1);
  EXPECT_EQ(machine().run(frame), XDP_PASS);
}

TEST(RedirectProgram, NoOctetsMakeItReadOutside) {
  std::mt19937 random(7);  // NOLINT: the same octets each time
  for (int round = 0; round < 20000; ++round) {
    Bytes frame = frame_to(round % 2 == 0 ? "192.0.2.1" : "2001:db8::1", round % 3 == 0 ? 7 : 0);
    frame.resize(14 + random() % (frame.size() - 13));
    for (std::size_t changes = random() % 4; changes > 0; --changes)
      frame[random() % frame.size()] = static_cast<std::uint8_t>(random());
    machine().run(frame);
  }
}

TEST(BpfAssembler, AJumpGoesToItsLabel) {
  using Register = BpfAssembler::Register;
  BpfAssembler out;
  const auto end = out.make_label();
  out.jump_if_equal(Register::r1, 7, end);
  out.move(Register::r0, 1);
  out.jump(end);
  out.bind(end);
  out.exit();
  const auto program = out.instructions();
  ASSERT_EQ(program.size(), 4U);
  EXPECT_EQ(program[0].off, 2);
  EXPECT_EQ(program[2].off, 0);
}

}  // namespace redirect_program_test
}  // namespace pando::manager
