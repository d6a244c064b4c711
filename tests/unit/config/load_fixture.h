#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "config/load.h"

namespace pando::config {

inline LoadResult load_yaml(std::string_view text) { return load_text(text, "/etc/pando/p.yaml"); }

inline Settings good(std::string_view text) {
  LoadResult result = load_yaml(text);
  EXPECT_EQ(result.error_text(), "") << text;
  return std::move(result.settings);
}

/// All errors, with the file's name cut off: "3: server.foo: unknown key".
inline std::string errors_of(std::string_view text) {
  std::string all;
  for (const std::string& error : load_yaml(text).errors) {
    EXPECT_TRUE(error.starts_with("/etc/pando/p.yaml:")) << error;
    all += (all.empty() ? "" : "\n") + error.substr(std::min<std::size_t>(error.size(), 18));
  }
  return all;
}

inline dns::Name name(std::string_view text) { return *dns::Name::from_text(text); }

/// A folder that exists for one test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char pattern[] = "/tmp/pando-config-XXXXXX";
    if (::mkdtemp(pattern) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string write(const std::string& file, std::string_view text) const {
    const std::string path = path_ + "/" + file;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace pando::config
