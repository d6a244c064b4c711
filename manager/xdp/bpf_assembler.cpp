#include "manager/xdp/bpf_assembler.h"

#include "base/result.h"

namespace pando::manager {

namespace {
constexpr std::size_t kUnbound = SIZE_MAX;

std::uint8_t code_of(unsigned parts) { return static_cast<std::uint8_t>(parts); }
}  // namespace

BpfAssembler::Label BpfAssembler::make_label() {
  labels_.push_back(kUnbound);
  return {labels_.size() - 1};
}

void BpfAssembler::bind(Label label) { labels_.at(label.number) = program_.size(); }

void BpfAssembler::put(std::uint8_t code, Register to, Register from, std::int16_t offset,
                       std::int32_t value) {
  bpf_insn instruction{};
  instruction.code = code;
  instruction.dst_reg = static_cast<std::uint8_t>(to) & 0xF;
  instruction.src_reg = static_cast<std::uint8_t>(from) & 0xF;
  instruction.off = offset;
  instruction.imm = value;
  program_.push_back(instruction);
}

void BpfAssembler::put_jump(std::uint8_t code, Register a, Register b, std::int32_t value,
                            Label to) {
  jumps_.emplace_back(program_.size(), to.number);
  put(code, a, b, 0, value);
}

void BpfAssembler::move(Register to, Register from) {
  put(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}
void BpfAssembler::move(Register to, std::int32_t value) {
  put(BPF_ALU64 | BPF_MOV | BPF_K, to, Register::r0, 0, value);
}
void BpfAssembler::add(Register to, std::int32_t value) {
  put(BPF_ALU64 | BPF_ADD | BPF_K, to, Register::r0, 0, value);
}
void BpfAssembler::and_(Register to, std::int32_t value) {
  put(BPF_ALU64 | BPF_AND | BPF_K, to, Register::r0, 0, value);
}
void BpfAssembler::swap16(Register at) {
  put(code_of(BPF_ALU | BPF_END | BPF_TO_BE), at, Register::r0, 0, 16);
}
void BpfAssembler::load(Width width, Register to, Register base, std::int16_t offset) {
  put(code_of(BPF_LDX | BPF_MEM | static_cast<unsigned>(width)), to, base, offset, 0);
}
void BpfAssembler::store(Width width, Register base, std::int16_t offset, Register from) {
  put(code_of(BPF_STX | BPF_MEM | static_cast<unsigned>(width)), base, from, offset, 0);
}
void BpfAssembler::store(Width width, Register base, std::int16_t offset, std::int32_t value) {
  put(code_of(BPF_ST | BPF_MEM | static_cast<unsigned>(width)), base, Register::r0, offset, value);
}

/// The only instruction of two words.
void BpfAssembler::load_map(Register to, int descriptor) {
  put(BPF_LD | BPF_DW | BPF_IMM, to, static_cast<Register>(BPF_PSEUDO_MAP_FD), 0, descriptor);
  put(0, Register::r0, Register::r0, 0, 0);
}

void BpfAssembler::jump(Label to) {
  put_jump(BPF_JMP | BPF_JA, Register::r0, Register::r0, 0, to);
}
void BpfAssembler::jump_if_greater(Register a, Register b, Label to) {
  put_jump(BPF_JMP | BPF_JGT | BPF_X, a, b, 0, to);
}
void BpfAssembler::jump_if_at_most(Register a, Register b, Label to) {
  put_jump(code_of(BPF_JMP | BPF_JLE | BPF_X), a, b, 0, to);
}
void BpfAssembler::jump_if_equal(Register a, std::uint32_t value, Label to) {
  put_jump(BPF_JMP32 | BPF_JEQ | BPF_K, a, Register::r0, static_cast<std::int32_t>(value), to);
}
void BpfAssembler::jump_if_not_equal(Register a, std::uint32_t value, Label to) {
  put_jump(BPF_JMP32 | BPF_JNE | BPF_K, a, Register::r0, static_cast<std::int32_t>(value), to);
}
void BpfAssembler::jump_if_null(Register a, Label to) {
  put_jump(BPF_JMP | BPF_JEQ | BPF_K, a, Register::r0, 0, to);
}
void BpfAssembler::call(std::int32_t helper) {
  put(code_of(BPF_JMP | BPF_CALL), Register::r0, Register::r0, 0, helper);
}
void BpfAssembler::exit() { put(code_of(BPF_JMP | BPF_EXIT), Register::r0, Register::r0, 0, 0); }

std::vector<bpf_insn> BpfAssembler::instructions() const {
  std::vector<bpf_insn> program = program_;
  for (const auto& [at, label] : jumps_) {
    PANDO_ASSERT(labels_.at(label) != kUnbound && labels_[label] > at);
    program[at].off = static_cast<std::int16_t>(labels_[label] - at - 1);
  }
  return program;
}

}  // namespace pando::manager
