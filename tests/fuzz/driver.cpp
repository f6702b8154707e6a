// Runs a fuzz target over its seeds and deterministic mutations of them, so that every compiler and
// machine tests the same inputs. Usage: fuzz_NAME [iterations [seed]] or fuzz_NAME FILE...
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "fuzz/fuzz.h"
#include "gallop/base/file.h"
#include "gallop/base/philox.h"

namespace {

size_t below(gallop::Philox& random, size_t bound) {
  return static_cast<size_t>(random.below(bound));
}

// Boundary values of sizes and counts.
uint64_t interesting_number(gallop::Philox& random) {
  const uint64_t power = uint64_t{1} << below(random, 64);
  return power + random.below(3) - 1;
}

void overwrite_with_number(gallop::Philox& random, std::string& input) {
  const uint64_t number = interesting_number(random);
  if (random.coin()) {  // As bytes, in either order.
    const size_t width = size_t{1} << below(random, 4);
    const bool big_endian = random.coin();
    const size_t at = below(random, input.size());
    for (size_t i = 0; i < width && at + i < input.size(); ++i) {
      const size_t place = big_endian ? width - 1 - i : i;
      input[at + i] = static_cast<char>(number >> (8 * place));
    }
    return;
  }
  const size_t at = input.find_first_of("0123456789", below(random, input.size()));
  if (at == std::string::npos) return;
  const size_t end = input.find_first_not_of("0123456789", at);
  input.replace(at, (end == std::string::npos ? input.size() : end) - at, std::to_string(number));
}

void mutate(gallop::Philox& random, std::string& input, const std::string& other) {
  if (input.empty()) {
    input = other;
    return;
  }
  const size_t at = below(random, input.size());
  const size_t length = 1 + below(random, std::min<size_t>(64, input.size() - at));
  switch (random.below(8)) {
    case 0: input[at] = static_cast<char>(input[at] ^ (1 << random.below(8))); break;
    case 1: input[at] = static_cast<char>(random()); break;
    case 2: input.erase(at, length); break;
    case 3: input.insert(at, input.substr(at, length)); break;
    case 4: input.resize(at); break;
    case 5: overwrite_with_number(random, input); break;
    case 6: input.insert(at, length, static_cast<char>(random())); break;
    default: {
      const size_t from = other.empty() ? 0 : below(random, other.size());
      input.replace(at, length, other.substr(from, 1 + below(random, 64)));
    }
  }
}

int run(const std::string& input) {
  return LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

int run_mutations(uint64_t iterations, uint64_t seed) {
  const std::vector<std::string> seeds = fuzz_seeds();
  for (const std::string& input : seeds) run(input);
  for (uint64_t i = 0; i < iterations; ++i) {
    gallop::Philox random(seed, gallop::Purpose::kSample, 0, i);
    std::string input = seeds[below(random, seeds.size())];
    const std::string& other = seeds[below(random, seeds.size())];
    for (uint64_t left = 1 + random.below(4); left > 0; --left) mutate(random, input, other);
    try {
      run(input);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "iteration %llu, seed %llu: %s\n", static_cast<unsigned long long>(i),
                   static_cast<unsigned long long>(seed), error.what());
      return 1;
    }
  }
  std::printf("%llu inputs\n", static_cast<unsigned long long>(iterations + seeds.size()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && gallop::fs::exists(argv[1])) {
    for (int i = 1; i < argc; ++i) run(gallop::read_file(argv[i]));
    return 0;
  }
  return run_mutations(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20000,
                       argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}
