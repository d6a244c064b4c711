#include "base/program_build.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <string_view>

#include "base/fd.h"

namespace pando {

namespace {

/// More than any linker makes; a hostile file costs no more than this.
constexpr std::size_t kMaxSegments = 64;
constexpr std::size_t kMaxNotes = 4096;
constexpr std::size_t kMaxIdBytes = 32;
constexpr std::string_view kDigits = "0123456789abcdef";

bool read_at(const Fd& file, void* into, std::size_t size, std::uint64_t offset) {
  return ::pread(file.get(), into, size, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(size);
}

std::size_t padded(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

std::string hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4U];
    text += kDigits[value & 15U];
  }
  return text;
}

/// The build ID among the notes of one segment; empty if it is not there.
std::string find_build_id(std::string_view notes) {
  Elf64_Nhdr note{};
  while (notes.size() >= sizeof note) {
    std::memcpy(&note, notes.data(), sizeof note);
    notes.remove_prefix(sizeof note);
    const std::size_t name_size = padded(note.n_namesz);
    if (notes.size() < name_size || notes.size() - name_size < note.n_descsz) return {};
    const std::string_view name = notes.substr(0, note.n_namesz);
    const std::string_view data = notes.substr(name_size, note.n_descsz);
    if (note.n_type == NT_GNU_BUILD_ID && name == std::string_view("GNU", 4))
      return hexadecimal(data.substr(0, kMaxIdBytes));
    notes.remove_prefix(std::min(notes.size(), name_size + padded(note.n_descsz)));
  }
  return {};
}

}  // namespace

Result<std::string> program_build(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno("cannot read " + path);
  Elf64_Ehdr header{};
  if (!read_at(file, &header, sizeof header, 0) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    return fail(Errc::kCorrupt, "{}: not a program", path);
  for (std::size_t i = 0; i < std::min<std::size_t>(header.e_phnum, kMaxSegments); ++i) {
    Elf64_Phdr segment{};
    if (!read_at(file, &segment, sizeof segment, header.e_phoff + i * sizeof segment)) break;
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNotes) continue;
    std::array<char, kMaxNotes> notes{};
    if (!read_at(file, notes.data(), segment.p_filesz, segment.p_offset)) break;
    if (std::string id = find_build_id({notes.data(), segment.p_filesz}); !id.empty()) return id;
  }
  return std::string();
}

bool is_build_id(std::string_view text) {
  return text.size() <= 2 * kMaxIdBytes &&
         text.find_first_not_of(kDigits) == std::string_view::npos;
}

std::string own_build() { return program_build("/proc/self/exe").value_or(""); }

std::string own_program() {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return {};
  std::string_view text(path.data(), static_cast<std::size_t>(size));
  constexpr std::string_view kReplaced = " (deleted)";
  if (text.ends_with(kReplaced)) text.remove_suffix(kReplaced.size());
  return std::string(text);
}

}  // namespace pando
