#include "gallop/track/tensorboard/event_file.h"

#include <vector>

#include <gtest/gtest.h>

#include "gallop/base/temporary_folder.h"
#include "unit/base/error_of.h"

namespace gallop::track::tensorboard {
namespace {

// TensorBoard's own package reads and writes such files in tests/interop/tensorboard.py.
class EventFiles : public testing::Test {
 protected:
  fs::path path() const { return folder_.path() / event_file_name(1000); }
  std::string written() const {
    const fs::path file = path();
    EventFileWriter writer(file, 1000);
    writer.write(Scalar{"train/loss", 1, 1001, 0.5});
    writer.write_options({{"lr", 0.1}, {"name", std::string("mlp")}, {"nesterov", true}}, 1000);
    writer.write(Scalar{"train/loss", 2, 1002, 0.25});
    writer.write_end(Ending::kFailure, 1003);
    writer.finish();
    return read_file(file);
  }
  // The events read from these bytes.
  struct Read {
    std::vector<Scalar> scalars;
    std::map<std::string, Option> options;
    std::optional<Ending> ending;
    size_t torn = 0;
    std::vector<Damage> damages;
  };
  enum class Damaged { kIsRefused, kIsPassedOver };
  Read read(const std::string& bytes, Damaged damaged = Damaged::kIsRefused) const {
    const fs::path file = path();
    write_file_atomically(file, bytes);
    Read result;
    EventVisitor visitor{.scalar = [&](const Scalar& one) { result.scalars.push_back(one); },
                         .options = [&](const auto& options) { result.options = options; },
                         .end = [&](Ending ending) { result.ending = ending; },
                         .torn = [&](size_t left) { result.torn = left; }};
    if (damaged == Damaged::kIsPassedOver) {
      visitor.damaged = [&](const Damage& damage) { result.damages.push_back(damage); };
    }
    read_event_file(file, visitor);
    return result;
  }

  TemporaryFolder folder_{fs::temp_directory_path(), "gallop-events-"};
};

TEST_F(EventFiles, RoundTrip) {
  const Read found = read(written());
  ASSERT_EQ(found.scalars.size(), 2u);
  EXPECT_EQ(found.scalars[1].tag, "train/loss");
  EXPECT_EQ(found.scalars[1].step, 2);
  EXPECT_EQ(found.scalars[1].time, 1002);
  EXPECT_EQ(found.scalars[1].value, 0.25);
  EXPECT_EQ(found.options.at("lr"), Option(0.1));
  EXPECT_EQ(found.options.at("name"), Option(std::string("mlp")));
  EXPECT_EQ(found.options.at("nesterov"), Option(true));
  EXPECT_EQ(found.ending, Ending::kFailure);
}

// A file that is being written may end anywhere.
TEST_F(EventFiles, MayBeTruncated) {
  const std::string whole = written();
  size_t most = 0, torn = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const Read found = read(whole.substr(0, size));
    EXPECT_GE(found.scalars.size(), most);
    most = found.scalars.size();
    EXPECT_LE(found.torn, size);
    torn += found.torn > 0 ? 1 : 0;
  }
  EXPECT_EQ(most, 2u);
  EXPECT_EQ(read(whole).torn, 0u);
  // All prefixes except those that end with one of five events, or are empty.
  EXPECT_EQ(torn, whole.size() - 5);
}

TEST_F(EventFiles, RejectFlippedBits) {
  const std::string whole = written();
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::string damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 0x10);
    const std::string error = error_of([&] { read(damaged); });
    EXPECT_TRUE(error.find("not an event file, or damaged at byte") != std::string::npos ||
                error.find("a damaged event at byte") != std::string::npos)
        << byte << ": " << error;
  }
  EXPECT_NE(error_of([&] {
              read("this is a text, not a file of events");
            }).find("not an event file, or damaged at byte 0"),
            std::string::npos);
}

// A single damage loses at most one event.
TEST_F(EventFiles, AreReadAfterDamage) {
  constexpr size_t kEvery = 5;
  const std::string whole = written();
  for (size_t byte = 0; byte < whole.size(); byte += kEvery) {
    std::string damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 0x10);
    const Read found = read(damaged, Damaged::kIsPassedOver);
    const size_t events =
        found.scalars.size() + (found.options.empty() ? 0 : 1) + (found.ending ? 1 : 0);
    EXPECT_GE(events, 3u) << byte;
    ASSERT_EQ(found.damages.size(), 1u) << byte;
    EXPECT_LE(found.damages[0].at, byte);
    EXPECT_GT(found.damages[0].at + found.damages[0].bytes, byte);
    EXPECT_EQ(found.torn, 0u);
  }
}

// A writer was killed within an event, and another one appended to its file.
TEST_F(EventFiles, AreReadAfterAnIncompleteEvent) {
  const std::string whole = written();
  const Read found = read(whole.substr(0, whole.size() - 3) + whole, Damaged::kIsPassedOver);
  EXPECT_EQ(found.scalars.size(), 4u);
  ASSERT_EQ(found.damages.size(), 1u);
  EXPECT_EQ(found.damages[0].what, "a damaged event");
}

TEST_F(EventFiles, RejectFilesWithoutEvents) {
  EXPECT_NE(error_of([&] {
              read("this is a text, not a file of events", Damaged::kIsPassedOver);
            }).find("not an event file, or damaged at byte 0"),
            std::string::npos);
}

}  // namespace
}  // namespace gallop::track::tensorboard
