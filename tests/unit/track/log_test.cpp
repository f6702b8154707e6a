#include "gallop/track/log.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/track/log_line.h"

namespace gallop::track {
namespace {

class LogFile : public testing::Test {
 protected:
  LogFile() {
    fs::remove_all(folder_);
    make_folders(folder_);
  }
  ~LogFile() override { fs::remove_all(folder_); }

  fs::path folder_ = fs::temp_directory_path() / fmt::format("gallop-log-{}", getpid());
  fs::path path_ = folder_ / "metrics.log";
};

Record step(int64_t number, double loss) {
  return {.step = number, .kind = "step", .values = {{"loss", loss}}};
}

std::vector<int64_t> steps(const std::vector<Record>& records) {
  std::vector<int64_t> result;
  for (const Record& record : records) {
    if (record.kind == "step") result.push_back(record.step);
  }
  return result;
}

using Steps = std::vector<int64_t>;

TEST_F(LogFile, KeepsWhatIsAppended) {
  {
    LogWriter writer(path_, 0, {{"host", "a\tb\n\"ä\""}});
    writer.append({.step = 3,
                   .kind = "evaluation",
                   .values = {{"loss", 0.1}, {"tiny", 5e-324}},
                   .texts = {{"note", "best"}}});
    writer.sync();
  }
  const Log log = read_log(path_);
  ASSERT_EQ(log.records.size(), 2u);
  EXPECT_EQ(log.records[0].kind, "session");
  EXPECT_EQ(log.records[0].texts.at("host"), "a\tb\n\"ä\"");
  EXPECT_EQ(log.records[1].session, 1);
  EXPECT_EQ(log.records[1].step, 3);
  EXPECT_GT(log.records[1].time, 1.6e9);
  EXPECT_EQ(log.records[1].values.at("loss"), 0.1);
  EXPECT_EQ(log.records[1].values.at("tiny"), 5e-324);
  EXPECT_EQ(log.records[1].texts.at("note"), "best");
  EXPECT_EQ(log.damaged_lines, 0);
  EXPECT_EQ(log.intact_bytes, static_cast<int64_t>(fs::file_size(path_)));
}

TEST_F(LogFile, KeepsNonFiniteValues) {
  LogWriter writer(path_, 0, {});
  const double infinity = std::numeric_limits<double>::infinity();
  writer.append({.step = 1,
                 .kind = "step",
                 .values = {{"a", infinity}, {"b", -infinity}, {"c", std::nan("")}}});
  const Record record = read_log(path_).records.back();
  EXPECT_EQ(record.values.at("a"), infinity);
  EXPECT_EQ(record.values.at("b"), -infinity);
  EXPECT_TRUE(std::isnan(record.values.at("c")));
}

TEST_F(LogFile, SupersedesStepsRepeatedByALaterSession) {
  {
    LogWriter writer(path_, 0, {});
    for (const int64_t number : {10, 20, 30, 40}) writer.append(step(number, 1));
  }
  {
    LogWriter writer(path_, 20, {});
    EXPECT_EQ(writer.session(), 2);
    for (const int64_t number : {30, 40}) writer.append(step(number, 2));
  }
  LogWriter writer(path_, 30, {});
  EXPECT_EQ(writer.session(), 3);
  writer.append(step(40, 3));
  const Log log = read_log(path_);
  EXPECT_EQ(steps(log.records), (Steps{10, 20, 30, 40, 30, 40, 40}));
  EXPECT_EQ(steps(log.current()), (Steps{10, 20, 30, 40}));
  std::string losses;
  for (const Record& record : log.current()) {
    if (record.kind == "step") losses += fmt::format("{} ", record.values.at("loss"));
  }
  EXPECT_EQ(losses, "1 1 2 3 ");
}

TEST_F(LogFile, DropsATornLineAndContinues) {
  {
    LogWriter writer(path_, 0, {});
    writer.append(step(1, 0.5));
  }
  const size_t kept = fs::file_size(path_);
  LogWriter(path_, 1, {{"session", "two"}});
  const std::string whole = read_file(path_);
  for (size_t length = kept; length < whole.size(); ++length) {
    for (const char* rest : {"", "\n", "\xffgarbage\n\n"}) {
      std::ofstream(path_, std::ios::binary) << whole.substr(0, length) << rest;
      if (length == whole.size() - 1 && *rest == '\n') continue;  // The line is complete.
      const Log torn = read_log(path_);
      ASSERT_EQ(torn.records.size(), 2u) << length;
      ASSERT_EQ(torn.intact_bytes, static_cast<int64_t>(kept));
      LogWriter writer(path_, 1, {});
      writer.append(step(2, 0.25));
      EXPECT_EQ(writer.session(), 2);
      const Log log = read_log(path_);
      ASSERT_EQ(steps(log.records), (Steps{1, 2}));
      ASSERT_EQ(log.damaged_lines, 0);
    }
  }
}

TEST_F(LogFile, OmitsALineWithAFlippedBit) {
  {
    LogWriter writer(path_, 0, {});
    for (const int64_t number : {1, 2, 3}) writer.append(step(number, 0.5));
  }
  const std::string good = read_file(path_);
  const size_t second_line = good.find('\n') + 1;
  const size_t third_line = good.find('\n', second_line) + 1;
  for (size_t at = second_line; at < third_line; ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    std::ofstream(path_, std::ios::binary) << bad;
    const Log log = read_log(path_);
    ASSERT_GE(log.damaged_lines, 1) << at;
    // Without its newline the line damages the next one as well.
    ASSERT_EQ(steps(log.records), at + 1 == third_line ? Steps{3} : (Steps{2, 3})) << at;
  }
  LogWriter writer(path_, 3, {});
  EXPECT_EQ(read_log(path_).records.back().kind, "session");
}

std::optional<Record> parsed(const std::string& json) {
  return record_of(fmt::format("{}\t{:016x}", json, xxh3_64(json)));
}

constexpr const char* kBegin = R"({"session":1,"step":2,"time":3,"kind":"step")";

TEST(LogLine, HasNumbersAndTexts) {
  const auto record = parsed(std::string(kBegin) +
                             R"(,"texts":{"step":"7","b":""},"values":{"z":)"
                             R"(18446744073709551615,"kind":-1,"a":"-inf","nan":"nan","n":0.5}})");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->session, 1);
  EXPECT_EQ(record->step, 2);
  EXPECT_EQ(record->time, 3);
  EXPECT_EQ(record->kind, "step");
  EXPECT_EQ(record->texts, (std::map<std::string, std::string>{{"step", "7"}, {"b", ""}}));
  ASSERT_EQ(record->values.size(), 5u);
  EXPECT_EQ(record->values.at("z"), 0x1p64);
  EXPECT_EQ(record->values.at("kind"), -1);
  EXPECT_EQ(record->values.at("a"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(record->values.at("nan")));
}

TEST(LogLine, MayHaveKeysOfALaterVersion) {
  for (const char* more :
       {R"("x":null)", R"("x":true)", R"("x":1.5)", R"("x":"y")", R"("x":[1,[],{"step":9}])",
        R"("x":{"step":9,"values":{"a":2},"y":["z"]})"}) {
    const auto record = parsed(fmt::format(R"({},{},"values":{{"a":1}}}})", kBegin, more));
    ASSERT_TRUE(record) << more;
    EXPECT_EQ(record->step, 2) << more;
    EXPECT_EQ(record->values, (std::map<std::string, double>{{"a", 1}})) << more;
  }
}

TEST(LogLine, RejectsInvalidRecords) {
  for (const char* text :
       {"", "1", "[]", "{}", "[{\"step\":1}]", R"({"session":1,"step":2,"time":3})",
        R"({"step":2,"time":3,"kind":"step"})", R"({"session":1,"step":2,"time":3,"kind":1})",
        R"({"session":1,"step":"2","time":3,"kind":"step"})",
        R"({"session":1,"step":[2],"time":3,"kind":"step"})",
        R"({"session":1,"step":18446744073709551615,"time":3,"kind":"step"})",
        R"({"session":1,"step":2,"time":{},"kind":"step"})"}) {
    EXPECT_FALSE(parsed(text)) << text;
  }
  for (const char* more : {R"("values":1)", R"("values":[])", R"("values":{"a":"b"})",
                           R"("values":{"a":null})", R"("values":{"a":[]})", R"("values":{"a":{}})",
                           R"("texts":{"a":1})", R"("texts":{"a":{}})"}) {
    EXPECT_FALSE(parsed(fmt::format("{},{}}}", kBegin, more))) << more;
  }
  EXPECT_TRUE(parsed(std::string(kBegin) + "}"));
}

TEST_F(LogFile, RemainsIntactOnAFullDisk) {
  LogWriter writer(path_, 0, {});
  writer.append(step(1, 0.5));
  const auto before = fs::file_size(path_);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit limit{before + 20, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_THROW(writer.append(step(2, 0.5)), DeviceError);
  EXPECT_EQ(fs::file_size(path_), before);
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, handler);
  writer.append(step(3, 0.5));
  EXPECT_EQ(steps(read_log(path_).records), (Steps{1, 3}));
}

TEST_F(LogFile, IsReadWhileItIsWritten) {
  LogWriter writer(path_, 0, {});
  writer.append(step(1, 0.5));
  EXPECT_EQ(steps(read_log(path_).current()), Steps{1});
  writer.append(step(2, 0.5));
  EXPECT_EQ(steps(read_log(path_).current()), (Steps{1, 2}));
}

TEST_F(LogFile, RequiresTheFile) {
  EXPECT_THROW(read_log(folder_ / "none"), DataError);
  EXPECT_THROW(LogWriter(folder_ / "none" / "log", 0, {}), DeviceError);
  EXPECT_THROW(LogWriter(folder_, 0, {}), DeviceError);
}

}  // namespace
}  // namespace gallop::track
