#include "manager/io/session_key.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/files/guarded_path.h"
#include "base/random.h"
#include "base/secret.h"
#include "dns/encoding.h"
#include "dns/tsig/tsig.h"
#include "manager/io/owned_directory.h"

namespace pando::manager {

namespace {

constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kLeastSecretBytes = 16;
constexpr std::size_t kMaxFileBytes = 4096;

/// The octets of `secret "BASE64"`; empty where the text has none.
Bytes secret_in(std::string_view text) {
  constexpr std::string_view kWord = "secret \"";
  const std::size_t word = text.find(kWord);
  if (word == std::string_view::npos) return {};
  const std::size_t start = word + kWord.size();
  const std::size_t end = text.find('"', start);
  if (end == std::string_view::npos) return {};
  auto secret = dns::base64_decode(text.substr(start, end - start));
  return secret && secret->size() >= kLeastSecretBytes ? std::move(*secret) : Bytes();
}

std::string file_text(const config::Key& key, ByteView secret) {
  std::string name = to_text(key.name);
  if (name.size() > 1) name.pop_back();  // BIND writes names of keys without the last dot
  return fmt::format("key \"{}\" {{\n\talgorithm {};\n\tsecret \"{}\";\n}};\n", name,
                     dns::to_text(key.algorithm), dns::base64_encode(secret));
}

std::string read_small(const Fd& file) {
  std::string text(kMaxFileBytes, '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

Status write_small(const Fd& file, std::string_view text, const std::string& path) {
  if (::ftruncate(file.get(), 0) != 0) return fail_errno("ftruncate " + path);
  const ssize_t put = ::pwrite(file.get(), text.data(), text.size(), 0);
  if (put < 0) return fail_errno("write " + path);
  if (static_cast<std::size_t>(put) != text.size())
    return fail(Errc::kIo, "{}: written in part", path);
  return {};
}

Result<OwnedDirectory> open_folder(const std::string& path, std::optional<std::uint32_t> owner) {
  std::error_code error;
  const bool there = std::filesystem::exists(path, error);
  auto folder = OwnedDirectory::open("keys.session-file", path, owner);
  if (!folder || there) return folder;
  if (auto owned = folder->own(0755); !owned) return pass(owned);
  return folder;
}

Result<bool> make_one(const config::Key& key, std::optional<std::uint32_t> owner) {
  const WipeFreed wipe_freed;
  const std::filesystem::path path(key.session_file);
  auto folder = open_folder(path.parent_path().string(), owner);
  if (!folder) return pass(folder);
  auto file = folder->open_file(path.filename().string());
  if (!file) return pass(file);
  if (!secret_in(read_small(*file)).empty()) return false;
  Bytes secret(kSecretBytes);
  fill_random(secret);
  if (auto put = write_small(*file, file_text(key, secret), key.session_file); !put)
    return pass(put);
  return true;
}

}  // namespace

Result<bool> make_session_keys(const config::Settings& settings,
                               std::optional<std::uint32_t> owner) {
  bool made = false;
  for (const config::Key& key : settings.keys) {
    if (key.session_file.empty()) continue;
    auto one = make_one(key, owner);
    if (!one) return fail(one.error().code, "key {}: {}", to_text(key.name), one.error().text);
    made = made || *one;
  }
  return made;
}

Bytes session_secret(const config::Key& key) {
  const WipeFreed wipe_freed;
  Bytes secret;
  if (const auto file = open_to_read(key.session_file)) secret = secret_in(read_small(*file));
  if (!secret.empty()) return secret;
  secret.resize(kSecretBytes);
  fill_random(secret);
  return secret;
}

}  // namespace pando::manager
