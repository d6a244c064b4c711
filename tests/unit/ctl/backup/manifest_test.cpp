#include "ctl/backup/manifest.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/files/guarded_path.h"
#include "config/files.h"

namespace pando::ctl {
namespace manifest_test {

class ManifestFile : public ::testing::Test {
 protected:
  ManifestFile() {
    char pattern[] = "/tmp/pando-manifest-XXXXXX";
    if (::mkdtemp(pattern) == nullptr) std::abort();
    folder_ = pattern;
    backup_ = {open_folder(folder_).value(), folder_};
  }
  ~ManifestFile() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string text() const {
    return config::read_regular_file(folder_ + "/manifest.json").value();
  }
  void write(const std::string& text) const { std::ofstream(folder_ + "/manifest.json") << text; }

  static Manifest sample() {
    Manifest manifest;
    manifest.program = "1.2.3";
    manifest.made = 1'800'000'000;
    manifest.configuration = "/etc/pando/pando.yaml";
    manifest.dump_bytes = 77;
    manifest.dump_hash = 0xFEDC'BA98'7654'3210;
    manifest.files = {{"/etc/pando/pando.yaml", "root", "pando", 0640, -5, 123, 1},
                      {"/zones/a \"quoted\" name", "", "", 04755, 1'700'000'000'123'456'789, 0, 0}};
    manifest.keys_left_out = {"key."};
    manifest.files_left_out = {"/etc/pando/tls.key"};
    manifest.files_missing = {"/zones/gone"};
    return manifest;
  }

  std::string folder_;
  BackupFolder backup_;
};

TEST_F(ManifestFile, ComesBackAsItWasWritten) {
  Manifest written = sample();
  written.included = {"/etc/pando/conf.d/keys.yaml"};
  written.files_of_keys = written.included;
  ASSERT_TRUE(write_manifest(written, backup_));
  const auto read = read_manifest(backup_);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->program, written.program);
  EXPECT_EQ(read->made, written.made);
  EXPECT_EQ(read->configuration, written.configuration);
  EXPECT_EQ(read->dump_bytes, written.dump_bytes);
  EXPECT_EQ(read->dump_hash, written.dump_hash);
  EXPECT_EQ(read->included, written.included);
  EXPECT_EQ(read->keys_left_out, written.keys_left_out);
  EXPECT_EQ(read->files_of_keys, written.files_of_keys);
  EXPECT_EQ(read->files_left_out, written.files_left_out);
  EXPECT_EQ(read->files_missing, written.files_missing);
  ASSERT_EQ(read->files.size(), written.files.size());
  for (std::size_t i = 0; i < read->files.size(); ++i) {
    const SavedFile& one = read->files[i];
    const SavedFile& other = written.files[i];
    EXPECT_EQ(std::tie(one.path, one.user, one.group, one.mode, one.modified_ns, one.bytes, one.hash),
              std::tie(other.path, other.user, other.group, other.mode, other.modified_ns,
                       other.bytes, other.hash));
  }
}

TEST_F(ManifestFile, WithoutFilesOfKeysHasThemInTheConfiguration) {
  ASSERT_TRUE(write_manifest(sample(), backup_));
  const auto read = read_manifest(backup_);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_TRUE(read->included.empty());
  EXPECT_EQ(read->files_of_keys, std::vector<std::string>{"/etc/pando/pando.yaml"});
}

TEST_F(ManifestFile, IsRefusedWithAnyOctetChanged) {
  ASSERT_TRUE(write_manifest(sample(), backup_));
  const std::string good = text();
  std::size_t refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    if (std::isspace(static_cast<unsigned char>(good[at])) != 0) continue;  // layout means nothing
    std::string bad = good;
    bad[at] = bad[at] == '3' ? '4' : '3';
    write(bad);
    const auto read = read_manifest(backup_);
    EXPECT_FALSE(read) << "octet " << at << ": " << bad;
    refused += read ? 0 : 1;
  }
  EXPECT_GT(refused, 100U);
}

TEST_F(ManifestFile, SaysWhatIsWrong) {
  auto read = read_manifest(backup_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kNotFound);
  EXPECT_NE(read.error().text.find("no manifest.json"), std::string::npos);
  for (const char* bad : {"", "[]", "{", "7", "{\"format\": \"x\"}", "{\"format\": 1}"}) {
    write(bad);
    read = read_manifest(backup_);
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().code, Errc::kCorrupt);
  }
  write("{\"format\": 2}");
  read = read_manifest(backup_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kUnsupported);
}

TEST_F(ManifestFile, IsNeverWrittenOverAnother) {
  ASSERT_TRUE(write_manifest(sample(), backup_));
  EXPECT_FALSE(write_manifest(sample(), backup_));
}

}  // namespace manifest_test
}  // namespace pando::ctl
