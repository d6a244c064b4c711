#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace pando::manager::testing {

/// A folder of keys and certificates that the program openssl(1) makes.
class CertificateFolder {
 public:
  CertificateFolder() {
    char pattern[] = "/tmp/pando-tls-XXXXXX";
    if (::mkdtemp(pattern) == nullptr) std::abort();
    path_ = pattern;
  }
  ~CertificateFolder() { std::filesystem::remove_all(path_); }
  CertificateFolder(const CertificateFolder&) = delete;
  CertificateFolder& operator=(const CertificateFolder&) = delete;

  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }
  void run(const std::string& arguments) const {
    const std::string line =
        fmt::format("cd {} && umask 077 && openssl {} 2>log", path_, arguments);
    ASSERT_EQ(std::system(line.c_str()), 0) << line;
  }
  /// NAME.key and NAME.pem, signed by itself, for so many days from now.
  void make(const std::string& name, int days = 90, const std::string& key = "ec",
            const std::string& option = "ec_paramgen_curve:P-256") const {
    run(fmt::format("req -x509 -newkey {} -pkeyopt {} -nodes -keyout {}.key -out {}.pem -days {} "
                    "-subj /CN={}.test",
                    key, option, name, name, days, name));
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(at(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(at(name)) << text;
    std::filesystem::permissions(at(name), std::filesystem::perms(0600));
  }

 private:
  std::string path_;
};

}  // namespace pando::manager::testing
