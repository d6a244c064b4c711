#include "ctl/backup/manifest.h"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/content_hash.h"
#include "base/files/guarded_path.h"
#include "config/files.h"
#include "ctl/backup/file_copy.h"

namespace pando::ctl {

namespace {

using nlohmann::json;

constexpr const char* kManifestName = "manifest.json";

std::string manifest_path(const BackupFolder& folder) {
  return fmt::format("{}/{}", folder.path, kManifestName);
}

std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

std::uint64_t hash_from(const json& value) {
  return std::stoull(value.get<std::string>(), nullptr, 16);
}

json file_json(const SavedFile& file) {
  return {{"path", file.path},   {"user", file.user},
          {"group", file.group}, {"mode", fmt::format("{:04o}", file.mode)},
          {"bytes", file.bytes}, {"modified-ns", file.modified_ns},
          {"xxh3", hash_text(file.hash)}};
}

SavedFile file_from(const json& value) {
  SavedFile file;
  file.path = value.at("path").get<std::string>();
  file.user = value.at("user").get<std::string>();
  file.group = value.at("group").get<std::string>();
  file.mode = static_cast<std::uint32_t>(
      std::stoul(value.at("mode").get<std::string>(), nullptr, 8) & 07777);
  file.bytes = value.at("bytes").get<std::uint64_t>();
  file.modified_ns = value.at("modified-ns").get<std::int64_t>();
  file.hash = hash_from(value.at("xxh3"));
  return file;
}

std::uint64_t hash_of(std::string_view text) {
  ContentHash hash;
  hash.add(text.data(), text.size());
  return hash.value();
}

/// The manifest file's text: `body` with a checksum of itself.
std::string with_checksum(json body) {
  const std::string checksum = hash_text(hash_of(body.dump()));
  body["checksum"] = checksum;
  return body.dump(1) + '\n';
}

Manifest manifest_from(const json& body) {
  Manifest manifest;
  manifest.program = body.at("program").get<std::string>();
  manifest.made = body.at("made").get<std::uint64_t>();
  manifest.configuration = body.at("configuration").get<std::string>();
  manifest.dump_bytes = body.at("dump-bytes").get<std::uint64_t>();
  manifest.dump_hash = hash_from(body.at("dump-xxh3"));
  for (const json& file : body.at("files")) manifest.files.push_back(file_from(file));
  // Backups of 0.1.0 have neither: a configuration was one file.
  manifest.included = body.value("included", std::vector<std::string>());
  manifest.files_of_keys = body.value("files-of-keys", std::vector<std::string>());
  manifest.keys_left_out = body.at("keys-left-out").get<std::vector<std::string>>();
  manifest.files_left_out = body.at("files-left-out").get<std::vector<std::string>>();
  manifest.files_missing = body.at("files-missing").get<std::vector<std::string>>();
  manifest.files_of_keys.resize(manifest.keys_left_out.size(), manifest.configuration);
  return manifest;
}

}  // namespace

std::string saved_path(const std::string& path) { return "files" + path; }

Status write_manifest(const Manifest& manifest, const BackupFolder& folder) {
  json files = json::array();
  for (const SavedFile& file : manifest.files) files.push_back(file_json(file));
  const std::string text = with_checksum({{"format", kBackupFormat},
                                          {"program", manifest.program},
                                          {"made", manifest.made},
                                          {"configuration", manifest.configuration},
                                          {"included", manifest.included},
                                          {"dump-bytes", manifest.dump_bytes},
                                          {"dump-xxh3", hash_text(manifest.dump_hash)},
                                          {"files", std::move(files)},
                                          {"keys-left-out", manifest.keys_left_out},
                                          {"files-of-keys", manifest.files_of_keys},
                                          {"files-left-out", manifest.files_left_out},
                                          {"files-missing", manifest.files_missing}});
  const std::string path = manifest_path(folder);
  auto fd = create_below(folder.fd, kManifestName);
  if (!fd) return fail(fd.error().code, "{}: {}", path, fd.error().text);
  const ByteView view(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  if (auto put = write_all(fd->get(), view); !put)
    return fail(put.error().code, "{}: {}", path, put.error().text);
  if (::fsync(fd->get()) != 0) return fail_errno("fsync of " + path);
  return sync_folder(folder.fd, folder.path);
}

Result<Manifest> read_manifest(const BackupFolder& folder) {
  const std::string path = manifest_path(folder);
  if (::faccessat(folder.fd.get(), kManifestName, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
    return fail(Errc::kNotFound, "{} has no {}: no backup, or one that did not end", folder.path,
                kManifestName);
  const auto file = open_below(folder.fd, kManifestName);
  if (!file) return fail(file.error().code, "{}: {}", path, file.error().text);
  const auto text = config::read_open_file(*file, path);
  if (!text) return tl::unexpected<Error>(text.error());
  try {
    json body = json::parse(*text);
    const auto format = body.at("format").get<std::uint32_t>();
    if (format != kBackupFormat)
      return fail(Errc::kUnsupported, "{}: format {}, and this build reads {}", path, format,
                  kBackupFormat);
    const auto checksum = body.at("checksum").get<std::string>();
    body.erase("checksum");
    if (checksum != hash_text(hash_of(body.dump())))
      return fail(Errc::kCorrupt, "{}: damaged, its checksum is another", path);
    return manifest_from(body);
  } catch (const std::exception& error) {
    return fail(Errc::kCorrupt, "{}: {}", path, error.what());
  }
}

}  // namespace pando::ctl
