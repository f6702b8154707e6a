// Runs a driver over its seeds and over mutations of them, the same ones every time, so that the
// drivers are tests where there is no libFuzzer.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "gallop/base/philox.h"

namespace {

using gallop::Philox;

constexpr size_t kLongest = 1 << 16;

size_t place(Philox& random, const std::string& file) {
  return static_cast<size_t>(random.below(std::max<size_t>(file.size(), 1)));
}

// Values that parsers get wrong: around zero, around powers of two, digits and separators.
void put_value(std::string& file, Philox& random) {
  static constexpr uint8_t kValues[] = {0,    1,    2,   7,   8,   0x7f, 0x80, 0x81, 0xc0, 0xd9,
                                        0xda, 0xfe, 255, '0', '9', ' ',  '\n', '=',  '/',  '.'};
  const size_t at = place(random, file);
  const size_t count = size_t{1} << random.below(4);
  const auto value = static_cast<char>(kValues[random.below(std::size(kValues))]);
  for (size_t i = at; i < std::min(file.size(), at + count); ++i) file[i] = value;
}

void mutate_once(std::string& file, const std::vector<std::string>& seeds, Philox& random) {
  const size_t at = place(random, file);
  switch (random.below(7)) {
    case 0: file[at] = static_cast<char>(file[at] ^ (1u << random.below(8))); break;
    case 1: put_value(file, random); break;
    case 2: file.resize(at); break;
    case 3: file.erase(at, random.below(64)); break;
    case 4: file.insert(at, file.substr(place(random, file), random.below(600))); break;
    case 5: file[at] = static_cast<char>(random()); break;
    default: {
      const std::string& other = seeds[random.below(seeds.size())];
      file = file.substr(0, at) + other.substr(place(random, other));
    }
  }
  if (file.empty()) file.push_back('\0');
  if (file.size() > kLongest) file.resize(kLongest);
}

void run(const std::string& file) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(file.data()), file.size());
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t iterations = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000;
  const std::vector<std::string> seeds = fuzz_seeds();
  run("");
  for (const std::string& seed : seeds) run(seed);
  for (uint64_t i = 0; i < iterations; ++i) {
    Philox random(1, gallop::Purpose::kSample, 0, i);
    std::string file = seeds[random.below(seeds.size())];
    for (uint64_t left = 1 + random.below(4); left > 0; --left) mutate_once(file, seeds, random);
    run(file);
  }
  std::printf("%llu mutations of %zu seeds\n", static_cast<unsigned long long>(iterations),
              seeds.size());
}
