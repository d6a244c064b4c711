#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pando::manager {

/// Writes eBPF instructions, so that no compiler for them is needed. Jumps go forward to labels,
/// which instructions() resolves. Names of methods are those of the kernel's instruction set
/// document.
class BpfAssembler {
 public:
  enum class Register : std::uint8_t { r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10 };
  /// A place in the program: jumps may name it before it is bound.
  struct Label {
    std::size_t number = 0;
  };
  enum class Width : std::uint8_t { k8 = BPF_B, k16 = BPF_H, k32 = BPF_W, k64 = BPF_DW };

  [[nodiscard]] Label make_label();
  /// The next instruction stands at `label`.
  void bind(Label label);

  void move(Register to, Register from);
  void move(Register to, std::int32_t value);
  void add(Register to, std::int32_t value);
  void and_(Register to, std::int32_t value);
  /// Turns the lower 16 bits from the network's order into this host's.
  void swap16(Register at);
  /// `to` = memory of `base` + `offset`, zero-extended.
  void load(Width width, Register to, Register base, std::int16_t offset);
  void store(Width width, Register base, std::int16_t offset, Register from);
  void store(Width width, Register base, std::int16_t offset, std::int32_t value);
  /// `to` = the map, for a helper's argument.
  void load_map(Register to, int descriptor);
  void jump(Label to);
  void jump_if_greater(Register a, Register b, Label to);
  /// Compare the lower 32 bits.
  void jump_if_equal(Register a, std::uint32_t value, Label to);
  void jump_if_not_equal(Register a, std::uint32_t value, Label to);
  void jump_if_at_most(Register a, Register b, Label to);
  /// All 64 bits: a pointer that may be null.
  void jump_if_null(Register a, Label to);
  void call(std::int32_t helper);
  void exit();

  /// The program so far, with its jumps.
  [[nodiscard]] std::vector<bpf_insn> instructions() const;

 private:
  void put(std::uint8_t code, Register to, Register from, std::int16_t offset, std::int32_t value);
  void put_jump(std::uint8_t code, Register a, Register b, std::int32_t value, Label to);

  std::vector<bpf_insn> program_;
  std::vector<std::size_t> labels_;                          ///< index of the instruction of each
  std::vector<std::pair<std::size_t, std::size_t>> jumps_;  ///< instruction, label
};

}  // namespace pando::manager
