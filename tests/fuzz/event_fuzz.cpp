// With libFuzzer: clang++ -std=c++20 -O1 -fsanitize=fuzzer,address,undefined -DFMT_HEADER_ONLY
// -Isrc
//   -Itests tests/fuzz/event_fuzz.cpp src/gallop/track/tensorboard/event_file.cpp
//   src/gallop/base/{crc32c,device_error,file,hardware,progress,protobuf,text}.cpp
#include "fuzz/fuzz.h"
#include "gallop/base/error.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/track/tensorboard/event_file.h"

namespace tensorboard = gallop::track::tensorboard;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  size_t letters = 0;
  const tensorboard::EventVisitor visitor{
      .scalar = [&](const tensorboard::Scalar& one) { letters += one.tag.size(); },
      .options =
          [&](const auto& options) {
            for (const auto& [name, option] : options) letters += name.size();
          },
      .end = [](tensorboard::Ending) {}};
  try {
    tensorboard::read_event({reinterpret_cast<const char*>(data), size}, visitor);
  } catch (const gallop::DataError&) {
    // Damaged input is rejected.
  }
  return 0;
}

// The events of a file, without lengths and checksums.
std::vector<std::string> fuzz_seeds() {
  constexpr size_t kHead = 12, kTail = 4;
  const gallop::TemporaryFolder folder(gallop::fs::temp_directory_path(), "gallop-fuzz-");
  const gallop::fs::path path = folder.path() / "events";
  tensorboard::EventFileWriter writer(path, 1000);
  writer.write(tensorboard::Scalar{"train/loss", 1, 1001, 0.5});
  tensorboard::Buckets buckets;
  buckets.tag = "weights/a";
  buckets.buckets = {{-1, 0, 3}, {0, 1, 4}};
  writer.write(buckets);
  tensorboard::Picture picture;
  picture.tag = "mistakes/a";
  picture.png = "no picture";
  writer.write(picture);
  writer.write_options({{"lr", 0.1}, {"name", std::string("mlp")}, {"nesterov", true}}, 1000);
  writer.write_end(tensorboard::Ending::kFailure, 1003);
  writer.finish();
  const std::string file = gallop::read_file(path);
  std::vector<std::string> events;
  for (size_t at = 0; at < file.size(); at += kHead + events.back().size() + kTail) {
    events.push_back(file.substr(at + kHead, static_cast<unsigned char>(file[at]) +
                                                 256 * static_cast<unsigned char>(file[at + 1])));
  }
  return events;
}
