#include "config/import/pdns/pdns_database.h"

#include <fstream>
#include <sstream>

#include "dns/dnssec/key_file.h"
#include "tests/support/trees.h"
#include "tests/unit/config/import/import_fixture.h"

namespace pando::config {
namespace pdns_database_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Imported dumped(std::string_view text) { return imported(ImportKind::kPdnsDump, text); }

std::string file_text(const Imported& result, std::string_view name) {
  for (const ZoneFileText& file : result.outcome.zone_files)
    if (file.name == name) return file.text;
  return "no file";
}

constexpr std::string_view kMySql = R"(-- MySQL dump 10.13
/*!40101 SET NAMES utf8mb4 */;
DROP TABLE IF EXISTS `comments`;
CREATE TABLE `comments` (`id` int NOT NULL, `comment` text, PRIMARY KEY (`id`));
INSERT INTO `comments` VALUES (1,'no; (record\'s)');
DROP TABLE IF EXISTS `domains`;
CREATE TABLE `domains` (
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `name` varchar(255) NOT NULL,
  `master` varchar(128) DEFAULT NULL,
  `last_check` int(11) DEFAULT NULL,
  `type` varchar(8) NOT NULL,
  `notified_serial` int(10) unsigned DEFAULT NULL,
  `account` varchar(40) CHARACTER SET utf8 DEFAULT 'a,(b',
  PRIMARY KEY (`id`),
  UNIQUE KEY `name_index` (`name`)
) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=latin1;
LOCK TABLES `domains` WRITE;
INSERT INTO `domains` VALUES (1,'a.test',NULL,NULL,'NATIVE',NULL,NULL),(2,'b.test','192.0.2.9:5300, [2001:db8::9]:54',1700000000,'SLAVE',NULL,'');
UNLOCK TABLES;
CREATE TABLE `records` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `domain_id` int(11) DEFAULT NULL,
  `name` varchar(255) DEFAULT NULL,
  `type` varchar(10) DEFAULT NULL,
  `content` varchar(64000) DEFAULT NULL,
  `ttl` int(11) DEFAULT NULL,
  `prio` int(11) DEFAULT NULL,
  `change_date` int(11) DEFAULT NULL,
  `disabled` tinyint(1) DEFAULT 0,
  `ordername` varchar(255) CHARACTER SET latin1 COLLATE latin1_bin DEFAULT NULL,
  `auth` tinyint(1) DEFAULT 1,
  PRIMARY KEY (`id`), KEY `nametype_index` (`name`,`type`)
);
INSERT INTO `records` VALUES
(1,1,'a.test','NS','ns1.a.test',3600,0,NULL,0,NULL,1),
(2,1,'a.test','SOA','ns1.a.test hostmaster.a.test 7',3600,0,NULL,0,NULL,1),
(3,1,'a.test','MX','mail.a.test',3600,10,NULL,0,NULL,1),
(4,1,'_x._tcp.a.test','SRV','5 80 www.a.test',60,1,NULL,0,NULL,1),
(5,1,'a.test','TXT','\"v=spf1; it\'s\" \"two\"',3600,NULL,NULL,0,NULL,1),
(6,1,'ent.a.test',NULL,NULL,NULL,NULL,NULL,0,NULL,1),
(7,1,'off.a.test','A','192.0.2.1',60,0,NULL,1,NULL,1),
(8,1,'www.a.test','A','192.0.2.2',NULL,0,NULL,0,NULL,1),
(9,2,'b.test','SOA','ns1.b.test hostmaster.b.test 7 1 2 3 4',3600,0,NULL,0,NULL,1);
INSERT INTO `tsigkeys` VALUES (1,'transfer','hmac-sha256','c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0');
INSERT INTO `domainmetadata` VALUES (1,1,'ALLOW-AXFR-FROM','192.0.2.0/24'),(2,1,'SOA-EDIT-API','DEFAULT');
INSERT INTO `cryptokeys` VALUES (1,1,257,0,1,'Private-key-format: v1.2\nAlgorithm: 13\n');
-- Dump completed on 2026-11-26 12:00:00
)";

TEST(PdnsDatabase, OfMySqlBecomesZoneFilesSecondariesAndKeys) {
  const Imported result = dumped(kMySql);
  const std::string text = file_text(result, "zones/a.test.zone");
  EXPECT_THAT(text, HasSubstr("$ORIGIN .\na.test\t3600\tIN\tSOA\tns1.a.test hostmaster.a.test 7 "
                              "10800 3600 604800 3600\n"));
  EXPECT_THAT(text, HasSubstr("a.test\t3600\tIN\tMX\t10 mail.a.test\n"));
  EXPECT_THAT(text, HasSubstr("_x._tcp.a.test\t60\tIN\tSRV\t1 5 80 www.a.test\n"));
  EXPECT_THAT(text, HasSubstr("a.test\t3600\tIN\tTXT\t\"v=spf1; it's\" \"two\"\n"));
  EXPECT_THAT(text, HasSubstr("www.a.test\t3600\tIN\tA\t192.0.2.2\n"));
  EXPECT_THAT(text, Not(HasSubstr("ent.a.test")));
  EXPECT_THAT(text, Not(HasSubstr("off.a.test")));
  EXPECT_EQ(result.outcome.zones, 2U);
  EXPECT_EQ(result.outcome.keys, 1U);
  EXPECT_EQ(result.outcome.zone_files.size(), 1U) << "a secondary zone comes by a transfer";
  EXPECT_EQ(result.options("b.test").primaries.size(), 2U);
  EXPECT_EQ(to_text(result.settings.remotes.at(0).address.at(0)), "192.0.2.9@5300");
  EXPECT_EQ(to_text(result.settings.remotes.at(1).address.at(0)), "2001:db8::9@54");
  const std::string report = result.report();
  EXPECT_THAT(report, HasSubstr(":42: off.a.test A: is disabled"));
  EXPECT_THAT(report, HasSubstr("zone a.test: ALLOW-AXFR-FROM 192.0.2.0/24: write the rule into"));
  EXPECT_THAT(report, HasSubstr("zone a.test: SOA-EDIT-API DEFAULT: see zones[].serial-policy"));
  EXPECT_THAT(report, Not(HasSubstr("signs it"))) << "its key is not active";
  EXPECT_THAT(report, HasSubstr(":37: a.test SOA: has 3 of 7 fields"));
  EXPECT_EQ(result.outcome.omissions.size(), 5U) << report;
  EXPECT_EQ(result.outcome.changes(), 1U) << "who may transfer";
}

/// A private key as `pdnsutil export-zone-key` prints it and the table has it.
std::string private_key() {
  std::ifstream file(
      pando::tests::source_path("/tests/data/dnssec/keys/Kexample.+013+33270.private"));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string signed_zones(std::string_view keys, std::string_view metadata = "") {
  std::string text =
      "INSERT INTO domains VALUES (1,'example',NULL,NULL,'NATIVE',NULL,NULL),"
      "(2,'pre.test',NULL,NULL,'MASTER',NULL,NULL),(3,'plain.test',NULL,NULL,'NATIVE',NULL,NULL),"
      "(4,'away.test','192.0.2.1',NULL,'SLAVE',NULL,NULL);\n";
  int number = 0;
  for (const char* zone : {"example", "pre.test", "plain.test"})
    text += fmt::format(
        "INSERT INTO records VALUES ({0},{0},'{1}','SOA','. . 1 2 3 4 5',60,NULL,0,NULL,1);\n",
        ++number, zone);
  return text + std::string(keys) + "INSERT INTO domainmetadata VALUES (1,2,'PRESIGNED','1');\n" +
         std::string(metadata);
}

/// Behind a DS record an unsigned zone is an outage, and so is one with another key.
TEST(PdnsDatabase, ZonesThatPowerDnsSignsAreSignedByTheirKeysAlone) {
  const Imported result = dumped(signed_zones(fmt::format(
      "INSERT INTO cryptokeys VALUES (1,1,257,1,1,'{0}'),(2,4,257,1,1,'{0}'),(3,3,257,0,1,'x'),"
      "(4,2,257,1,1,'{0}');\n",
      private_key())));
  EXPECT_EQ(result.outcome.zones, 2U) << result.report();
  EXPECT_EQ(result.options("plain.test").dnssec, "");
  EXPECT_EQ(result.options("example").dnssec, "pdns");
  const DnssecPolicy policy = *result.settings.dnssec_policy("pdns");
  EXPECT_FALSE(policy.make_keys);
  EXPECT_EQ(policy.algorithm, 13);
  ASSERT_EQ(result.outcome.key_files.size(), 1U);
  const ZoneFileText& file = result.outcome.key_files.front();
  const auto key = dns::parse_key_file({file.text, "file"}, std::nullopt);
  ASSERT_TRUE(key && key->record) << file.name;
  EXPECT_EQ(file.name, fmt::format("zone-keys/Kexample.+013+{:05}.pem", key->key.tag()));
  EXPECT_EQ(key->key.flags(), 257);
  ASSERT_EQ(result.outcome.key_imports.size(), 1U);
  EXPECT_EQ(result.outcome.key_imports[0].command, "pandoctl dnssec import example. " + file.name);
  EXPECT_THAT(result.changes(), HasSubstr("zone example: PowerDNS signs it (cryptokeys): it is not"));
  EXPECT_THAT(result.changes(), HasSubstr("zone away.test: is left out: PowerDNS signs it"));
  EXPECT_THAT(result.changes(), HasSubstr("zone pre.test: is left out: it is signed (PRESIGNED)"));
  EXPECT_THAT(result.report(), Not(HasSubstr("PrivateKey")));
}

/// A KSK and a ZSK have their roles by the flags of their rows.
TEST(PdnsDatabase, KeysKeepTheFlagsOfTheirRows) {
  const Imported result = dumped(signed_zones(fmt::format(
      "INSERT INTO cryptokeys VALUES (1,1,257,1,1,'{0}'),(2,1,256,1,1,'{0}');\n", private_key())));
  ASSERT_EQ(result.outcome.key_files.size(), 2U) << result.report();
  for (std::size_t i = 0; i < 2; ++i) {
    const auto key = dns::parse_key_file({result.outcome.key_files[i].text, "file"}, std::nullopt);
    ASSERT_TRUE(key);
    EXPECT_EQ(key->key.flags(), i == 0 ? 257 : 256);
  }
  EXPECT_THAT(result.outcome.key_imports[0].command,
              HasSubstr(result.outcome.key_files[0].name + " " + result.outcome.key_files[1].name));
}

TEST(PdnsDatabase, DenialIsHashedAsBefore) {
  for (const auto& [parameters, use] :
       {std::pair{"1 0 5 ab", Nsec3Use::kOn}, {"1 1 0 -", Nsec3Use::kOptOut}}) {
    const Imported result = dumped(signed_zones(
        fmt::format("INSERT INTO cryptokeys VALUES (1,1,257,1,1,'{}');\n", private_key()),
        fmt::format("INSERT INTO domainmetadata VALUES (2,1,'NSEC3PARAM','{}'),"
                    "(3,1,'NSEC3NARROW','1');\n",
                    parameters)));
    ASSERT_EQ(result.settings.dnssec_policies.size(), 1U) << result.report();
    EXPECT_EQ(result.settings.dnssec_policies[0].nsec3, use);
  }
}

TEST(PdnsDatabase, ZonesWhoseKeysDoNotSignHereAreLeftOut) {
  const std::string good = private_key();
  for (const auto& [row, reason] :
       {std::pair{std::string("(1,1,257,1,1,'x')"), "has a key that does not sign here"},
        {fmt::format("(1,1,257,1,1,'{0}'),(2,1,256,1,1,'x')", good), "has a key that does not sign"},
        {fmt::format("(1,1,0,1,1,'{0}')", good), "neither 256 nor 257"}}) {
    const Imported result =
        dumped(signed_zones(fmt::format("INSERT INTO cryptokeys VALUES {};\n", row)));
    EXPECT_EQ(result.file("example"), "no zone") << row;
    EXPECT_THAT(result.changes(), HasSubstr("zone example: is left out: PowerDNS signs it")) << row;
    EXPECT_THAT(result.changes(), HasSubstr(reason));
    EXPECT_TRUE(result.outcome.key_files.empty() && result.outcome.key_imports.empty());
  }
}

TEST(PdnsDatabase, CatalogsAreCatalogs) {
  const Imported result = dumped(
      "INSERT INTO domains (id, name, master, type, catalog) VALUES "
      "(1,'out.test',NULL,'PRODUCER',NULL),(2,'in.test','192.0.2.1','CONSUMER',NULL),"
      "(3,'m.test',NULL,'MASTER','out.test');\n"
      "INSERT INTO records VALUES (1,3,'m.test','SOA','. . 1 2 3 4 5',60,NULL,0,NULL,1);\n");
  ASSERT_EQ(result.settings.catalogs.size(), 2U) << result.report();
  EXPECT_EQ(dns::to_text(*result.options("m.test").catalog), "out.test.");
  EXPECT_EQ(result.changes(), "");
}

TEST(PdnsDatabase, OfPostgreSqlIsReadFromCopies) {
  const Imported result = dumped(
      "\\connect pdns\nSET client_encoding = 'UTF8';\n"
      "CREATE TABLE public.domains (\n    id integer NOT NULL,\n    name character varying(255),\n"
      "    CONSTRAINT c_lowercase_name CHECK (((name)::text = lower((name)::text)))\n);\n"
      "COPY public.comments (id, comment) FROM stdin;\n1\tCOPY public.records FROM\n\\.\n\n"
      "COPY public.domains (id, name, master, last_check, type, notified_serial, account) FROM "
      "stdin;\n4\ta.test\t\\N\t\\N\tMASTER\t7\t\\N\n\\.\n\n"
      "COPY public.records (id, domain_id, name, type, content, ttl, prio, disabled, ordername, "
      "auth) FROM stdin;\n"
      "1\t4\ta.test\tSOA\tns1.a.test hostmaster.a.test 7 1 2 3 4\t60\t0\tf\t\\N\tt\n"
      "2\t4\ta.test\tTXT\t\"a\\\\\\\\b\"\t60\t0\tf\t\\N\tt\n"
      "3\t4\toff.a.test\tA\t192.0.2.1\t60\t0\tt\t\\N\tt\n"
      "\\.\n\nSELECT pg_catalog.setval('public.records_id_seq', 3, true);\n");
  EXPECT_EQ(file_text(result, "zones/a.test.zone"),
            "$ORIGIN .\na.test\t60\tIN\tSOA\tns1.a.test hostmaster.a.test 7 1 2 3 4\n"
            "a.test\t60\tIN\tTXT\t\"a\\\\b\"\n");
  EXPECT_THAT(result.report(), HasSubstr(":19: off.a.test A: is disabled"));
}

TEST(PdnsDatabase, OfSqliteAndOfInsertsWithColumnNamesIsRead) {
  for (const char* into : {"records", "\"records\""}) {
    const Imported result = dumped(fmt::format(
        "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n"
        "CREATE TABLE domains (\n  id INTEGER PRIMARY KEY,\n  name VARCHAR(255) NOT NULL COLLATE "
        "NOCASE,\n  master VARCHAR(128) DEFAULT NULL, type VARCHAR(8) NOT NULL, options TEXT);\n"
        "INSERT INTO domains VALUES(1,'a.test',NULL,'NATIVE',NULL);\n"
        "INSERT INTO {} (name, content, type, ttl, domain_id) VALUES "
        "('a.test','. . 1 2 3 4 5','SOA',60,1), ('t.a.test', '\"\\\"quoted\\\" it''s\"', 'TXT', "
        "60, 1);\nCOMMIT;\n",
        into));
    EXPECT_EQ(file_text(result, "zones/a.test.zone"),
              "$ORIGIN .\na.test\t60\tIN\tSOA\t. . 1 2 3 4 5\n"
              "t.a.test\t60\tIN\tTXT\t\"\\\"quoted\\\" it's\"\n")
        << into;
    EXPECT_EQ(result.report(), "");
  }
}

TEST(PdnsDatabase, WhatCannotBeServedIsReportedWithItsLine) {
  const Imported result = dumped(
      "INSERT INTO domains VALUES (1,'a.test',NULL,NULL,'NATIVE',NULL,NULL);\n"
      "INSERT INTO domains VALUES (2,'empty.test',NULL,NULL,'NATIVE',NULL,NULL);\n"
      "INSERT INTO domains VALUES (3,'alone.test','',NULL,'SLAVE',NULL,NULL);\n"
      "INSERT INTO domains VALUES (4,'bad.test','ns.example',NULL,'SLAVE',NULL,NULL);\n"
      "INSERT INTO domains VALUES (5,'short.test');\n"
      "INSERT INTO records VALUES (1,1,'a.test','A','192.0.2.1',60,0,0,NULL,1);\n"
      "INSERT INTO records VALUES (2,9,'gone.test','A','192.0.2.1',60,0,0,NULL,1);\n"
      "INSERT INTO domains VALUES (6,'c.test',NULL,NULL,'NATIVE',NULL,NULL);\n"
      "INSERT INTO records VALUES (3,6,'c.test','SOA','. . 1',60,0,0,NULL,1);\n"
      "INSERT INTO records VALUES (4,6,'x.c.test','A','192.0.2.1\n',60,0,0,NULL,1);\n");
  EXPECT_EQ(result.outcome.zones, 0U);
  const std::string report = result.report();
  EXPECT_THAT(report, HasSubstr(":6: a.test?60?IN?A?192.0.2.1: no SOA record follows"));
  EXPECT_THAT(report, HasSubstr(":2: zone empty.test: has no records"));
  EXPECT_THAT(report, HasSubstr(":3: zone alone.test: is a secondary zone without primaries"));
  EXPECT_THAT(report, HasSubstr(":4: zone bad.test: ns.example: "));
  EXPECT_THAT(report, HasSubstr(":5: domains: a row has not as many values"));
  EXPECT_THAT(report, HasSubstr(":7: records: the table domains has not their zone"));
  EXPECT_THAT(report, HasSubstr(":9: zone c.test.: is not taken over: 1 of its lines are bad"));
}

TEST(PdnsDatabase, ADumpThatEndsEarlyIsAnErrorWithItsLine) {
  for (const char* text :
       {"INSERT INTO records VALUES (1,1,'a.test'", "INSERT INTO records VALUES (1,1,'a",
        "\nINSERT INTO records VALUES (1,1,1,1,1,1,1,1,1,1)",
        "COPY public.records (id) FROM stdin;\n1\n"})
    EXPECT_THAT(import_error(ImportKind::kPdnsDump, text),
                ::testing::MatchesRegex("/x.conf:[0-9]+: the dump ends in the middle.*"))
        << text;
}

TEST(PdnsDatabase, ADumpThatEndsBehindAStatementIsAnErrorWhereItsProgramEndsWithALine) {
  const std::string row = "INSERT INTO domains VALUES (1,'a.test',NULL,NULL,'NATIVE',NULL,NULL);\n";
  const std::pair<const char*, const char*> ends[] = {
      {"-- MySQL dump 10.13\n", "-- Dump completed on 2026-11-26\n"},
      {"/*M!999999 enable the sandbox mode */\n-- MariaDB dump 10.19\n", "-- Dump completed\n"},
      {"--\n-- PostgreSQL database dump\n--\n", "--\n-- PostgreSQL database dump complete\n--\n"},
      {"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n", "COMMIT;\n"},
  };
  for (const auto& [first, last] : ends) {
    EXPECT_THAT(import_error(ImportKind::kPdnsDump, first + row),
                ::testing::HasSubstr("the dump ends early"))
        << first;
    EXPECT_THAT(dumped(first + row + last).report(), HasSubstr("zone a.test"));
  }
}

TEST(PdnsDatabase, ReplacesInEachOtherAreBounded) {
  std::string text = "INSERT INTO domains (id,name) VALUES (1,";
  for (int depth = 0; depth < 100'000; ++depth) text += "replace(";
  EXPECT_THAT(import_error(ImportKind::kPdnsDump, text + "'a.test'"),
              ::testing::HasSubstr("/x.conf:1:"));
}

/// A zone a.test with these rows behind its SOA.
std::string with_rows(std::string_view rows) {
  return "INSERT INTO domains VALUES (1,'a.test',NULL,NULL,'NATIVE',NULL,NULL);\n"
         "INSERT INTO records VALUES (1,1,'a.test','SOA','. . 1 2 3 4 5',60,0,0,NULL,1);\n" +
         std::string(rows);
}

TEST(PdnsDatabase, ARowThatCannotBeReadIsAnErrorAndNoLoss) {
  for (const char* rows :
       {"INSERT INTO records VALUES (2,1,'x.a.test','A',concat('192.0.2.','2'),60,0,0,NULL,1);",
        "INSERT INTO records VALUES (2,1,'x.a.test','A',CURRENT_USER,60,0,0,NULL,1);",
        "INSERT INTO records VALUES (2,1,'x.a.test','A','a' 'b',60,0,0,NULL,1);",
        "INSERT INTO records SELECT * FROM older;",
        "INSERT INTO archive.records VALUES (2,1,'x.a.test','A','192.0.2.1',60,0,0,NULL,1);",
        "USE other; INSERT INTO records VALUES (2,1,'x.a.test','A','192.0.2.1',60,0,0,NULL,1);",
        "INSERT INTO comments VALUES (1,'never ends", "CREATE TABLE x (id int", "/* open"})
    EXPECT_THAT(import_error(ImportKind::kPdnsDump, with_rows(rows)),
                ::testing::MatchesRegex("/x.conf:[0-9]+: .*"))
        << rows;
  for (const char* text : {"", "PGDMP", "SQLite format 3", "SELECT 1;"})
    EXPECT_THAT(import_error(ImportKind::kPdnsDump, text), HasSubstr("/x.conf:1: ")) << text;
}

TEST(PdnsDatabase, NoColumnHoldsMoreThanItself) {
  for (const char* row : {"'x.a.test\t60\tIN\tA\t192.0.2.66 ;','TXT','\"a\"'",
                          "'x.a.test 60 IN A 192.0.2.66 ;.a.test','TXT','\"a\"'",
                          "'x.evil.test. 60 IN A 192.0.2.66 ;.a.test','TXT','\"a\"'"}) {
    const Imported result =
        dumped(with_rows(fmt::format("INSERT INTO records VALUES (2,1,{},60,0,0,NULL,1);", row)));
    EXPECT_EQ(result.outcome.zones, 0U) << row;
    EXPECT_THAT(result.report(), HasSubstr("is not taken over")) << row;
  }
}

TEST(PdnsDatabase, TextsAreReadAsPowerDnsReadsThem) {
  const std::string key(300, 'k');
  const Imported result = dumped(with_rows(fmt::format(
      "INSERT INTO records VALUES (2,1,'k.a.test','TXT','\"{}\"',60,0,0,NULL,1);"
      "INSERT INTO records VALUES (3,1,'d.a.test','TXT','v=DKIM1; k=rsa',60,0,0,NULL,1);"
      "INSERT INTO records VALUES (4,1,'z.a.test','TXT','\"zonecount: 5\"',60,0,0,NULL,1);"
      "INSERT INTO records VALUES (5,1,'h.a.test','TXT',0x22686922,60,0,0,NULL,1);",
      key)));
  const std::string text = file_text(result, "zones/a.test.zone");
  EXPECT_THAT(text,
              HasSubstr(fmt::format("TXT\t\"{}\" \"{}\"\n", key.substr(0, 255), key.substr(255))));
  EXPECT_THAT(text, HasSubstr("TXT\t\"v=DKIM1; k=rsa\"\n"));
  EXPECT_THAT(text, HasSubstr("\"zonecount: 5\""));
  EXPECT_THAT(text, HasSubstr("TXT\t\"hi\"\n"));
  EXPECT_EQ(result.report(), "");
}

TEST(PdnsDatabase, EachSignedZoneIsNamedInWhateverOrderTablesCome) {
  const Imported result = dumped(
      "INSERT INTO cryptokeys VALUES(1,1,257,1,1,replace('Private\\nkey','\\n',char(10)));\n"
      "INSERT INTO domainmetadata VALUES(1,2,'PRESIGNED','1');\n"
      "INSERT INTO records VALUES (1,1,'a.test','SOA','. . 1 2 3 4 5',60,NULL,0,NULL,1);\n"
      "INSERT INTO domains VALUES (1,'a.test',NULL,NULL,'NATIVE',NULL,NULL);\n"
      "INSERT INTO domains VALUES (2,'b.test',NULL,NULL,'NATIVE',NULL,NULL);\n");
  const std::string report = result.report();
  EXPECT_THAT(report, HasSubstr("zone a.test: is left out: PowerDNS signs it"));
  EXPECT_THAT(report, HasSubstr("zone b.test: is left out: it is signed (PRESIGNED)"));
}

TEST(PdnsDatabase, StatementsInFunctionsAndTriggersAreNoRows) {
  const Imported result = dumped(
      with_rows("CREATE FUNCTION f() RETURNS trigger AS $x$ BEGIN INSERT INTO records VALUES "
                "(9,1,'evil.a.test','A','192.0.2.66',60,0,0,NULL,1); END $x$ LANGUAGE plpgsql;\n"
                "CREATE TRIGGER t AFTER INSERT ON domains BEGIN INSERT INTO records VALUES "
                "(9,1,'evil.a.test','A','192.0.2.66',60,0,0,NULL,1); END;\n"
                "INSERT INTO records VALUES (2,1,'x.a.test','A','192.0.2.1',60,0,0,NULL,1);\n"));
  const std::string text = file_text(result, "zones/a.test.zone");
  EXPECT_THAT(text, Not(HasSubstr("evil")));
  EXPECT_THAT(text, HasSubstr("x.a.test"));
}

TEST(PdnsDatabase, ZonesOfOneNumberAreNotMixed) {
  for (const char* kind : {"NATIVE", "SLAVE"}) {
    const Imported result = dumped(fmt::format(
        "INSERT INTO domains VALUES (1,'a.test',NULL,NULL,'{}',NULL,NULL);\n"
        "INSERT INTO domains VALUES (1,'b.test',NULL,NULL,'NATIVE',NULL,NULL);\n"
        "INSERT INTO domains VALUES (1,'c.test',NULL,NULL,'NATIVE',NULL,NULL);\n"
        "INSERT INTO domains VALUES (2,'d.test',NULL,NULL,'NATIVE',NULL,NULL);\n"
        "INSERT INTO records VALUES (1,1,'a.test','SOA','. . 1 2 3 4 5',60,0,0,NULL,1);\n"
        "INSERT INTO records VALUES (2,1,'b.test','SOA','. . 1 2 3 4 5',60,0,0,NULL,1);\n"
        "INSERT INTO records VALUES (3,2,'d.test','SOA','. . 1 2 3 4 5',60,0,0,NULL,1);\n",
        kind));
    EXPECT_EQ(result.outcome.zones, 1U);
    EXPECT_EQ(result.file("d.test"), "/etc/pando/zones/d.test.zone");
    const std::string report = result.report();
    EXPECT_THAT(report, HasSubstr(":1: zone a.test: is not taken over: another zone has its"));
    EXPECT_THAT(report, HasSubstr(":2: zone b.test: is not taken over: zone a.test has its "
                                  "number, 1, too"));
    EXPECT_THAT(report, HasSubstr(":3: zone c.test: is not taken over: zone a.test has its"));
  }
}

TEST(PdnsDatabase, AZoneThatIsThereTwiceIsTakenOnce) {
  const Imported result = dumped(
      with_rows("INSERT INTO domains VALUES (1,'A.test','192.0.2.1',NULL,'SLAVE',NULL,NULL);\n"
                "INSERT INTO domains VALUES (2,'a.test',NULL,NULL,'NATIVE',NULL,NULL);\n"
                "INSERT INTO records VALUES (2,2,'a.test','SOA','. . 9 2 3 4 5',60,0,0,NULL,1);\n"
                "INSERT INTO domains VALUES (NULL,'n.test',NULL,NULL,'NATIVE',NULL,NULL);\n"
                "INSERT INTO records VALUES (3,NULL,'n.test','SOA','. . 1 2 3 4 5',60,0,0,NULL,"
                "1);\n"));
  EXPECT_EQ(result.outcome.zones, 1U);
  EXPECT_THAT(file_text(result, "zones/a.test.zone"), HasSubstr(". . 1 2 3 4 5"));
  const std::string report = result.report();
  EXPECT_THAT(report, HasSubstr(":3: zone A.test: is there a second time: its first row counts"));
  EXPECT_THAT(report, HasSubstr(":5: zone a.test.: a zone of this name is there already"));
  EXPECT_THAT(report, HasSubstr(":6: zone n.test: has no number"));
  EXPECT_THAT(report, HasSubstr(":7: records: the table domains has not their zone"));
}

TEST(PdnsDatabase, AnSoaOfAnotherNameMakesNoZone) {
  const auto with_soa_of = [](std::string_view owner) {
    return dumped(
        fmt::format("INSERT INTO domains VALUES (1,'a.test',NULL,NULL,'NATIVE',NULL,NULL);\n"
                    "INSERT INTO records VALUES (1,1,'{}','SOA','. . 1 2 3 4 5',60,0,0,NULL,1);\n"
                    "INSERT INTO records VALUES (2,1,'x.a.test','A','192.0.2.1',60,0,0,NULL,1);\n",
                    owner));
  };
  for (const char* other : {"b.test", "test", "sub.a.test", "a..test"}) {
    const Imported result = with_soa_of(other);
    EXPECT_EQ(result.outcome.zones, 0U) << other;
    EXPECT_THAT(result.report(), HasSubstr("is no SOA record of its zone, a.test")) << other;
    EXPECT_THAT(result.report(), HasSubstr(":2: zone a.test: is not taken over: 1 of")) << other;
  }
  EXPECT_EQ(with_soa_of("A.TEST").report(), "");
}

TEST(PdnsDatabase, OfTwoSoaRecordsThatOfTheZoneNamesIt) {
  for (const char* other : {"sub.a.test", "a.test"}) {
    const Imported result = dumped(
        fmt::format("INSERT INTO domains VALUES (1,'a.test',NULL,NULL,'NATIVE',NULL,NULL);\n"
                    "INSERT INTO records VALUES (1,1,'{}','SOA','. . 1 2 3 4 5',60,0,0,NULL,1);\n"
                    "INSERT INTO records VALUES (2,1,'a.test','SOA','. . 2 2 3 4 5',60,0,0,NULL,"
                    "1);\n",
                    other));
    EXPECT_EQ(result.outcome.zones, 0U);
    EXPECT_THAT(result.report(), HasSubstr("is a second SOA record in its zone"));
    EXPECT_THAT(result.report(), HasSubstr("zone a.test.: is not taken over: 1 of"));
  }
}

TEST(PdnsDatabase, NoTwoZonesHaveOneFile) {
  std::string dump;
  int number = 0;
  for (const char* name : {"", "root", "a/b.test", "a\\047b.test", "a\\\\047b.test", "A.test"}) {
    dump += fmt::format("INSERT INTO domains VALUES ({},'{}',NULL,NULL,'NATIVE',NULL,NULL);\n",
                        ++number, name);
    dump +=
        fmt::format("INSERT INTO records VALUES (1,{},'{}','SOA','. . 1 2 3 4 5',60,0,0,NULL,1);\n",
                    number, name);
  }
  const Imported result = dumped(dump);
  std::vector<std::string> files;
  for (const ZoneFileText& file : result.outcome.zone_files) files.push_back(file.name);
  EXPECT_THAT(files, ElementsAre("zones/root-zone", "zones/root.zone", "zones/a\\047b.test.zone",
                                 "zones/a\\\\047b.test.zone", "zones/a.test.zone"));
  EXPECT_EQ(result.file("a/b.test"), "/etc/pando/zones/a\\047b.test.zone");
  EXPECT_EQ(result.file("."), "/etc/pando/zones/root-zone");
  EXPECT_THAT(result.report(), HasSubstr("zone a/b.test.: a zone of this name is there already"))
      << "it is another writing of that name";
}

/// The report and the SOA of a zone a.test with this content.
std::pair<std::string, std::string> soa_of(std::string_view content) {
  const Imported result =
      dumped(fmt::format("INSERT INTO domains VALUES (1,'a.test',NULL,NULL,'NATIVE',NULL,NULL);\n"
                         "INSERT INTO records VALUES (1,1,'a.test','SOA','{}',60,0,0,NULL,1);\n",
                         content));
  const std::string text = file_text(result, "zones/a.test.zone");
  constexpr std::string_view kBefore = "$ORIGIN .\na.test\t60\tIN\tSOA\t";
  return {result.report(), text.starts_with(kBefore) ? text.substr(kBefore.size()) : text};
}

TEST(PdnsDatabase, AnSoaIsCompletedAsPowerDnsDidAndReported) {
  using ::testing::Pair;
  EXPECT_THAT(soa_of(""), Pair(HasSubstr("a.test SOA: has 0 of 7 fields"),
                               "a.misconfigured.dns.server.invalid hostmaster.a.test 0 10800 3600 "
                               "604800 3600\n"));
  EXPECT_THAT(soa_of("ns.a.test"), Pair(HasSubstr("has 1 of 7 fields"),
                                        "ns.a.test hostmaster.a.test 0 10800 3600 604800 3600\n"));
  EXPECT_THAT(soa_of("ns h 7 1 2 3"), Pair(HasSubstr("has 6 of 7"), "ns h 7 1 2 3 3600\n"));
  EXPECT_THAT(soa_of("ns h 7 1 2 3 4"), Pair("", "ns h 7 1 2 3 4\n"));
  EXPECT_THAT(soa_of("ns h 0 1 2 3 4"), Pair(HasSubstr("has the serial 0"), "ns h 0 1 2 3 4\n"));
  EXPECT_THAT(soa_of("ns h,x;y 7 1 2 3"), Pair(HasSubstr("is not taken over"), "no file"));
  EXPECT_THAT(soa_of("ns h 7 1 2 3 4 5"), Pair(HasSubstr("is not taken over"), "no file"));
}

TEST(PdnsDatabase, AMailboxOfAnSoaBecomesAName) {
  using ::testing::Pair;
  EXPECT_THAT(soa_of("ns host@a.test 7 1 2 3 4"),
              Pair(HasSubstr("a.test SOA: host@a.test is written as host.a.test: "),
                   "ns host.a.test 7 1 2 3 4\n"));
  EXPECT_THAT(soa_of("ns a.b@c.a.test 7 1 2 3 4"),
              Pair(HasSubstr("is written as a\\.b.c.a.test"), "ns a\\.b.c.a.test 7 1 2 3 4\n"));
  for (const char* name : {"a\\.b.a.test", "a\\@b.a.test", "a\\064b.a.test", "a.b.test."})
    EXPECT_THAT(soa_of(fmt::format("ns {} 7 1 2 3 4", name)),
                Pair("", fmt::format("ns {} 7 1 2 3 4\n", name)));
  EXPECT_THAT(soa_of("ns @a.test 7 1 2 3 4"), Pair(HasSubstr("is not taken over"), "no file"));
}

TEST(PdnsDatabase, EscapesAreThoseOfTheirServer) {
  const std::string zone =
      "COPY public.domains (id, name, type) FROM stdin;\n1\ta.test\tNATIVE\n\\.\n"
      "COPY public.records (domain_id, name, type, content, ttl) FROM stdin;\n"
      "1\ta.test\tSOA\t. . 1 2 3 4 5\t60\n";
  const Imported copied =
      dumped(zone + "1\ta.test\tTXT\t\"\\v\\f\\b\\x7C\\x4g\\1012\\60\\\\\\\\\"\t60\n\\.\n");
  EXPECT_THAT(file_text(copied, "zones/a.test.zone"), HasSubstr("TXT\t\"\v\f\b|\x04gA20\\\\\"\n"));
  const Imported prefixed = dumped(with_rows(
      "INSERT INTO records VALUES (2,1,'a.test','TXT',E'\"\\x41\\102\\'\"',60,0,0,NULL,1);\n"));
  EXPECT_THAT(file_text(prefixed, "zones/a.test.zone"), HasSubstr("TXT\t\"AB'\"\n"));
  const Imported mysql = dumped(
      "-- MySQL dump\n" +
      with_rows("insert into records values (2,1,'a.test','TXT','\"\\%\\_\\x41\\'\"',60,0,0,NULL,"
                "1);\n-- Dump completed\n"));
  EXPECT_THAT(file_text(mysql, "zones/a.test.zone"), HasSubstr("TXT\t\"\\%\\_x41'\"\n"));
  const Imported lower = dumped(
      "replace into `domains` values (1,'a.test',NULL,NULL,'NATIVE',NULL,NULL);\n"
      "replace into `records` values (1,1,'a.test','SOA','. . 1 2 3 4 5',60,0,0,NULL,1),"
      "(2,1,'a.test','TXT','\\\"it\\'s\\\"',60,0,0,NULL,1);\n");
  EXPECT_THAT(file_text(lower, "zones/a.test.zone"), HasSubstr("TXT\t\"it's\"\n"));
}

TEST(PdnsDatabase, ADumpIsRecognisedByItsText) {
  EXPECT_EQ(guess_import_kind("/x/backup.sql", kMySql), ImportKind::kPdnsDump);
  EXPECT_EQ(guess_import_kind("/x/pdns.conf", "launch=gmysql\n"), ImportKind::kPdns);
  for (const char* text :
       {"COPY public.records (id) FROM stdin;\n\\.\n", "REPLACE INTO `records` VALUES (1);",
        "-- x\ninsert into domains values (1);", "BEGIN; Insert Ignore Into pdns.\"domains\"\n(id)",
        "INSERT INTO `pdns`.`records` VALUES (1);", "INSERT OR REPLACE INTO domains VALUES (1);",
        "CREATE TABLE IF NOT EXISTS domains (id int);", "  create table public.records (id int);",
        "copy domains from stdin;", "PGDMP\x01", "SQLite format 3"})
    EXPECT_EQ(guess_import_kind("/x/pdns.txt", text), ImportKind::kPdnsDump) << text;
  EXPECT_EQ(guess_import_kind("/x/pdns.sql", ""), ImportKind::kPdnsDump);
  for (const char* text :
       {"INSERT INTO recordsets VALUES (1);", "select * from records;", "# copy records\n",
        "zone { insert records }", "create index i on records (id);", "copy of records"})
    EXPECT_NE(guess_import_kind("/x/x.txt", text), ImportKind::kPdnsDump) << text;
  const auto unknown =
      import_text("hello\n", "/x/x.txt", {.kind = std::nullopt, .with_includes = false});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_THAT(unknown.error().text, HasSubstr("--from pdns-dump"));
}

TEST(PdnsDatabase, ADumpThatIsNoTextNamesTheProgramThatMakesOne) {
  EXPECT_THAT(import_error(ImportKind::kPdnsDump, "PGDMP\x01"), HasSubstr("pg_restore -f FILE"));
  EXPECT_THAT(import_error(ImportKind::kPdnsDump, "SQLite format 3"), HasSubstr(".dump"));
}

}  // namespace pdns_database_test
}  // namespace pando::config
