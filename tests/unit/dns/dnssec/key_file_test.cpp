#include "dns/dnssec/key_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "dns/encoding.h"
#include "tests/support/trees.h"

namespace pando::dns {
namespace key_file_test {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kStems[] = {"Kexample.+008+16161", "Kexample.+013+33270",
                                  "Kexample.+014+07666"};
constexpr const char* kSecretOfRfc6605 = "GU6SnQ/Ou+xC5RumuIUIuJZteXT2z0O/ok1s38Et6mQ=";

std::string content(const std::string& name) {
  std::ifstream file(pando::tests::source_path("/tests/data/dnssec/keys/" + name));
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

std::string exported_by_powerdns() {
  return std::string("Private-key-format: v1.2\nAlgorithm: 13 (ECDSAP256SHA256)\nPrivateKey: ") +
         kSecretOfRfc6605 + "\n";
}

Result<ZoneKey> parse(const std::string& text) {
  return parse_key_file({text, "file"}, std::nullopt);
}
Result<ZoneKey> parse(const std::string& text, const std::string& record) {
  return parse_key_file({text, "file"}, KeyFileText{record, "record"});
}

std::string error_of(const Result<ZoneKey>& result) {
  return result ? "a key" : result.error().text;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// The line that begins with `name`, with its end.
std::string line_of(const std::string& text, std::string_view name) {
  const auto at = text.find(name);
  EXPECT_NE(at, std::string::npos) << name;
  return text.substr(at, text.find('\n', at) + 1 - at);
}

class KeyFiles : public ::testing::Test {
 protected:
  KeyFiles() {
    std::string name = "/tmp/pando-keys-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~KeyFiles() override { fs::remove_all(folder_); }
  std::string put(const std::string& name, const std::string& text, ::mode_t mode = 0600) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  /// Copies of a pair of the tree, with the modes that tools give them.
  std::string put_pair(const std::string& stem) {
    put(stem + ".key", content(stem + ".key"), 0644);
    put(stem + ".private", content(stem + ".private"));
    return folder_ + "/" + stem;
  }
  std::string folder_;
};

TEST_F(KeyFiles, OfBindAndLdnsAreReadByEachOfTheirNames) {
  for (const char* stem : kStems) {
    const std::string path = put_pair(stem);
    for (const char* ending : {"", ".key", ".private"}) {
      const auto read = read_key_file(path + ending);
      ASSERT_TRUE(read) << read.error().text;
      EXPECT_EQ(to_text(read->record->zone), "example.");
      EXPECT_EQ(key_file_stem(read->key, read->record->zone), stem);
    }
  }
}

TEST_F(KeyFiles, OfKnotHaveTheFlagsOfAKeyThatSignsAll) {
  for (const auto& [name, algorithm] :
       {std::pair("knot_rsa.pem", 8), {"knot_p256.pem", 13}, {"knot_ed25519.pem", 15}}) {
    const auto read = read_key_file(put(name, content(name), 0640));
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_FALSE(read->record);
    EXPECT_EQ(read->key.algorithm(), algorithm);
    EXPECT_EQ(read->key.flags(), 257);
  }
}

TEST_F(KeyFiles, OfPowerdnsNeedNoRecord) {
  const auto read = read_key_file(put("exported.private", exported_by_powerdns()));
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_FALSE(read->record);
  EXPECT_EQ(read->key.tag(), 55648) << "as in RFC 6605 §6.1";
}

TEST_F(KeyFiles, OfOursAreReadAsTheyWereWritten) {
  const Name zone = Name::from_text("Sub.Example.").value();
  for (const std::uint8_t algorithm : std::initializer_list<std::uint8_t>{8, 10, 13, 14, 15, 16})
    for (const std::uint16_t flags : std::initializer_list<std::uint16_t>{256, 257}) {
      const SigningKey key = SigningKey::generate(algorithm, flags, 1024).value();
      const std::string text = key_file_text(key, zone).value();
      const auto read = read_key_file(put("ours.pem", text));
      ASSERT_TRUE(read) << read.error().text;
      EXPECT_EQ(read->key.dnskey(), key.dnskey());
      EXPECT_EQ(read->record->zone, zone);
    }
}

TEST_F(KeyFiles, WithRightsOfOthersAreRefused) {
  const std::string text = exported_by_powerdns();
  for (const ::mode_t mode : {0600U, 0400U, 0640U, 0440U, 0700U})
    EXPECT_TRUE(read_key_file(put("key", text, mode))) << mode;
  for (const ::mode_t mode : {0604U, 0644U, 0602U, 0601U, 0660U, 0620U, 0666U}) {
    const auto read = read_key_file(put("key", text, mode));
    ASSERT_FALSE(read) << mode;
    EXPECT_EQ(read.error().code, Errc::kDenied);
    EXPECT_THAT(read.error().text, HasSubstr(folder_ + "/key: users beside its owner"));
  }
}

TEST_F(KeyFiles, ThatAreNoFilesAreRefused) {
  EXPECT_THAT(error_of(read_key_file(folder_ + "/none")), HasSubstr("none"));
  EXPECT_THAT(error_of(read_key_file(folder_)), HasSubstr("not a regular file"));
  EXPECT_THAT(error_of(read_key_file(put("empty", ""))), HasSubstr("empty: not a key file"));
  EXPECT_THAT(error_of(read_key_file(put("large", std::string(kMaxKeyFileBytes + 1, 'x')))),
              HasSubstr("too large"));
}

TEST_F(KeyFiles, OfBindNeedTheirRecord) {
  const std::string stem = put_pair(kStems[1]);
  fs::remove(stem + ".key");
  EXPECT_THAT(error_of(read_key_file(stem)), HasSubstr(".key"));
  EXPECT_THAT(error_of(read_key_file(stem + ".private")), HasSubstr(".key"));
}

TEST(KeyFileText, OddFieldsOfBindAreLeftOut) {
  const std::string record = content("Kexample.+013+33270.key");
  std::string text = content("Kexample.+013+33270.private");
  text = replaced(text, "v1.3", "v1.9");
  text +=
      "Revoke: 20200101000000\nInactive: soon\nDSPublish:\nSome-Day: what: ever\n\n; a remark\n";
  const auto read = parse(text, record);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->key.tag(), 33270);
  std::string with_cr;
  for (const char c : text) with_cr += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_TRUE(parse(with_cr, record));
}

TEST(KeyFileText, FaultsOfThePrivateFormatNameTheLine) {
  const std::string text = content("Kexample.+008+16161.private");
  const std::string record = content("Kexample.+008+16161.key");
  ASSERT_TRUE(parse(text, record));
  const auto error = [&](std::string_view from, std::string_view to) {
    return error_of(parse(replaced(text, from, to), record));
  };
  EXPECT_EQ(error("v1.3", "v2.0"), "file:1: not version 1 of the format");
  EXPECT_EQ(error("Algorithm: 8", "Algorithm: eight"), "file:2: not a number of an algorithm");
  EXPECT_EQ(error("Algorithm: 8 (RSASHA256)\n", ""), "file: no algorithm");
  EXPECT_EQ(error("Prime1: ", "Prime1: !"), "file:6: not base 64");
  EXPECT_EQ(error("Prime1: ", "Prime1 "), "file:6: a line without a field's name");
  EXPECT_EQ(error("Prime1: ", "Prime2: "), "file:7: a field is given twice");
  EXPECT_EQ(error("Prime1: ", "Prime9: "), "file: no field Prime1");
  EXPECT_EQ(error(line_of(text, "Coefficient"), "Coefficient:\n"), "file:10: not base 64");
  EXPECT_EQ(error("Created", "Engine: cGtjczExAA==\nCreated"),
            "file:11: the private key is in a hardware module");
  EXPECT_EQ(error_of(parse(text + text, record)), "file:14: a second key in one file");
  EXPECT_THAT(error("Algorithm: 8", "Algorithm: 5"), HasSubstr("file: algorithm 5 cannot sign"));
  EXPECT_THAT(error("Algorithm: 8", "Algorithm: 13"), HasSubstr("file: no field PrivateKey"));
  EXPECT_EQ(error_of(parse("Private-key-format: v1.3\n")), "file: no algorithm");
}

TEST(KeyFileText, RsaOfOtherSizesAndOfOtherNumbersIsRefused) {
  const std::string text = content("Kexample.+008+16161.private");
  const std::string record = content("Kexample.+008+16161.key");
  const auto with = [&](std::string_view field, const Bytes& number) {
    return error_of(parse(replaced(text, line_of(text, fmt::format("{}: ", field)),
                                   fmt::format("{}: {}\n", field, base64_encode(number))),
                          record));
  };
  EXPECT_THAT(with("Modulus", Bytes(64, 0xF1)), HasSubstr("an RSA key of 512 bits"));
  EXPECT_THAT(with("Modulus", Bytes(1024, 0xF1)), HasSubstr("an RSA key of 8192 bits"));
  const std::string half = replaced(text, line_of(text, "Prime1: "), "Prime1: AQAB\n");
  EXPECT_THAT(
      error_of(parse(replaced(half, line_of(text, "PrivateExponent: "), "PrivateExponent: AQAB\n"),
                     record)),
      HasSubstr("file: the private key does not belong to the public key"));
  EXPECT_THAT(with("Modulus", Bytes(128, 0xF1)), HasSubstr("file: the "));
  EXPECT_THAT(with("PublicExponent", Bytes(9, 0x51)),
              HasSubstr("file: the numbers are those of no"));
}

TEST(KeyFileText, FaultsOfARecordNameTheLine) {
  const std::string text = content("Kexample.+013+33270.private");
  const std::string record = content("Kexample.+013+33270.key");
  const auto error = [&](std::string_view from, std::string_view to) {
    return error_of(parse(text, replaced(record, from, to)));
  };
  EXPECT_EQ(error("DNSKEY 257 3", "DNSKEY 385 3"), "record:5: the key is revoked");
  EXPECT_EQ(error("DNSKEY 257 3", "DNSKEY 1 3"),
            "record:5: the DNSKEY record is not that of a zone's key");
  EXPECT_EQ(error("DNSKEY 257 3", "DNSKEY 259 3"),
            "record:5: the DNSKEY record has flags beside those of a zone's key");
  EXPECT_EQ(error("DNSKEY 257 3 13", "DNSKEY 257 3 13 !"),
            "record:5: the DNSKEY record is malformed");
  EXPECT_EQ(error("IN DNSKEY", "IN CDNSKEY"), "record:5: not a DNSKEY record");
  EXPECT_EQ(error_of(parse(text, record + record)), "record:10: a second DNSKEY record");
  EXPECT_EQ(error_of(parse(text, "; nothing\n")), "record: no DNSKEY record");
  EXPECT_EQ(error_of(parse(text, content("Kexample.+014+07666.key"))),
            "file: the key does not match its DNSKEY record");
  EXPECT_EQ(parse(text, replaced(record, "257", "256"))->key.flags(), 256);
  EXPECT_TRUE(parse(text, replaced(record, " IN ", " 3600 in ")));
}

TEST(KeyFileText, FaultsOfPemNameTheLine) {
  const std::string pem = content("knot_p256.pem");
  const std::string body = pem.substr(pem.find('\n') + 1, 16);
  const auto error = [&](std::string_view from, std::string_view to) {
    return error_of(parse(replaced(pem, from, to)));
  };
  EXPECT_EQ(error_of(parse(pem + pem)), "file:7: a second key in one file");
  EXPECT_EQ(error("BEGIN PRIVATE", "BEGIN ENCRYPTED PRIVATE"),
            "file:1: the key is encrypted: 'openssl pkey' writes it in the clear");
  EXPECT_EQ(error("BEGIN PRIVATE", "BEGIN EC PRIVATE"),
            "file:1: not PKCS #8: 'openssl pkey' turns other forms of keys into it");
  EXPECT_EQ(error("BEGIN PRIVATE KEY", "BEGIN CERTIFICATE"),
            "file:1: a PEM block of another kind than PRIVATE KEY");
  EXPECT_EQ(error("END PRIVATE", "END RSA PRIVATE"),
            "file:6: the PEM block does not end as it began");
  EXPECT_EQ(error_of(parse(pem.substr(0, pem.find("-----END")))),
            "file:5: the PEM block has no end");
  EXPECT_EQ(error(body, "!" + body), "file:2: not base 64");
  EXPECT_EQ(error(body, body.substr(4)), "file:6: not a PKCS #8 structure");
  EXPECT_EQ(error_of(parse("example. IN DNSKEY 257 3 13 AAAA\n" + pem)),
            "file: the key does not match its DNSKEY record");
  EXPECT_TRUE(parse("Subject: a key\n# for people\n" + pem + "\ntail\n"));
}

TEST(KeyFileText, TheRecordTellsWhichAlgorithmOfRsaAKeyHas) {
  const SigningKey key = SigningKey::generate(10, 256, 1024).value();
  const std::string text = key_file_text(key, Name::from_text("a.").value()).value();
  EXPECT_EQ(parse(text)->key.algorithm(), 10);
  EXPECT_EQ(parse(text.substr(text.find('\n') + 1))->key.algorithm(), 8) << "the usual one";
}

/// Eight characters in a row of a secret, in whatever place.
bool has_piece(const std::string& message, const std::string& secret) {
  for (std::size_t at = 0; at + 8 <= secret.size(); ++at)
    if (message.find(secret.substr(at, 8)) != std::string::npos) return true;
  return false;
}

TEST(KeyFileText, NoErrorRepeatsAPieceOfAKey) {
  std::mt19937 random(11);
  unsigned errors = 0;
  for (const char* name : {"Kexample.+008+16161.private", "Kexample.+013+33270.private",
                           "knot_rsa.pem", "knot_ed25519.pem"}) {
    const std::string text = content(name);
    for (int round = 0; round < 400; ++round) {
      std::string broken = text;
      for (auto i = 1 + random() % 3; i > 0; --i) {
        const std::size_t at = random() % broken.size();
        constexpr std::string_view kOdd = "\n:;! ADNSKEY-";
        if (round % 2 == 0)
          broken[at] = kOdd[random() % kOdd.size()];
        else
          broken.erase(at, 1 + random() % 40);
      }
      if (round % 5 == 0) broken.insert(random() % broken.size(), " DNSKEY 257 3 13 ");
      const auto result = parse(broken);
      if (result) continue;
      ++errors;
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        if (line.find("---") == std::string::npos && line.find("Format") == std::string::npos &&
            line.find("Algorithm") == std::string::npos &&
            line.find("20261128") == std::string::npos) {
          ASSERT_FALSE(has_piece(result.error().text, line.substr(line.find(':') + 1)))
              << result.error().text;
        }
      }
    }
  }
  EXPECT_GT(errors, 800U);
}

TEST(KeyFileName, IsThatOfBindsTools) {
  const SigningKey key = parse(exported_by_powerdns())->key;
  const auto stem = [&](const char* zone) {
    return key_file_stem(key, Name::from_text(zone).value());
  };
  EXPECT_EQ(stem("Example.NET."), "Kexample.net.+013+55648");
  EXPECT_EQ(stem("."), "K.+013+55648");
  EXPECT_EQ(stem("0/25.2.0.192.in-addr.arpa."), "K0%2F25.2.0.192.in-addr.arpa.+013+55648");
  EXPECT_EQ(stem("a\\.b\\000."), "Ka%5C.b%5C000.+013+55648");
}

}  // namespace key_file_test
}  // namespace pando::dns
