// Measures data loading. Every command prints one line of JSON.
//
//   bench_loading overhead threads=2        the loader's overhead per sample
//   bench_loading decode FOLDER threads=2   libjpeg-turbo alone on the JPEG files of a folder, from
//                                           memory
//   bench_loading load KEY=VALUE...         batches by the options of the recipe's section `data`
//   bench_loading make-photos FOLDER COUNT  creates JPEG files like photographs
//
// `seconds=S` sets the duration of the measurement (default 3).
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <turbojpeg.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/hardware.h"
#include "gallop/config/resolve.h"
#include "gallop/data/data_config.h"
#include "gallop/data/data_module.h"
#include "gallop/data/loader.h"
#include "photos.h"

namespace gallop::benchmark {

namespace {

using nlohmann::json;

/// Options of all commands; `data` is only for `load`.
struct Options {
  double seconds = 3;
  int64_t batch = 512;
  int64_t threads = 2;
};

void visit(config::Visitor& visitor, Options& options) {
  visitor.field({.name = "seconds", .help = "duration of the measurement", .min = 0.01},
                options.seconds);
  visitor.field({.name = "batch", .help = "samples per batch", .min = 1}, options.batch);
  visitor.field({.name = "threads", .help = "threads", .min = 0, .max = 1024}, options.threads);
}

config::Node parse(const std::vector<std::string>& settings, config::Problems& problems) {
  config::Node root;
  root.kind = config::Node::Kind::kMap;
  for (const auto& setting : settings) {
    const auto equals = setting.find('=');
    if (equals == std::string::npos) throw UsageError("'" + setting + "' is not KEY=VALUE");
    const std::string key = setting.substr(0, equals);
    apply_override(root, key, config::parse_override_value(setting.substr(equals + 1), key),
                   problems);
  }
  return root;
}

Options parse_options(const std::vector<std::string>& settings) {
  config::Problems problems;
  Options options;
  read_fields(
      parse(settings, problems), [&](config::Visitor& v) { visit(v, options); }, problems);
  problems.throw_if_any();
  return options;
}

/// Samples that take no time to fill.
class EmptySamples final : public data::Samples {
 public:
  EmptySamples()
      : Samples({{.name = "input", .shape = {{4}, c10::ScalarType::Float}},
                 {.name = "index", .shape = {{}, c10::ScalarType::Long}}}) {}
  int64_t size() const override { return 50'000; }
  bool fill(int64_t index, int64_t, const data::SampleRow& row, data::Scratch&) const override {
    *row.as<int64_t>(1) = index;
    return true;
  }
};

/// Takes batches for a number of seconds, after those that were prefetched.
json measure(data::Loader& loader, int64_t batch, double seconds) {
  for (int i = 0; i < 10; ++i) loader.next();
  const double begin = monotonic_seconds();
  int64_t samples = 0, batches = 0;
  while (monotonic_seconds() < begin + seconds) {
    samples += loader.next()->size();
    ++batches;
  }
  const double took = monotonic_seconds() - begin;
  return {{"samples_per_second", static_cast<double>(samples) / took},
          {"microseconds_per_batch", took / static_cast<double>(batches) * 1e6},
          {"batch", batch},
          {"samples", samples}};
}

json overhead(const std::vector<std::string>& settings) {
  const Options options = parse_options(settings);
  const EmptySamples samples;
  data::Loader loader(samples,
                      {.batch = options.batch, .threads = static_cast<int>(options.threads)}, {});
  json result = measure(loader, options.batch, options.seconds);
  result["microseconds_per_sample"] = 1e6 / result["samples_per_second"].get<double>();
  return result;
}

std::vector<std::string> read_jpegs(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".jpg") files.push_back(read_file(entry.path()));
  }
  if (files.empty()) throw DataError(folder + ": has no .jpg files");
  return files;
}

// Repeated passes over the files, in which each thread takes the next one.
void decode_files(const std::vector<std::string>& files, double until, std::atomic<int64_t>& next,
                  std::atomic<int64_t>& images, std::atomic<int64_t>& bytes) {
  const std::unique_ptr<void, int (*)(void*)> decoder(tjInitDecompress(), tjDestroy);
  std::vector<uint8_t> pixels;
  int64_t decoded = 0, read = 0;
  while (monotonic_seconds() < until) {
    const auto& file = files[static_cast<size_t>(next++) % files.size()];
    const auto* data = reinterpret_cast<const unsigned char*>(file.data());
    int width = 0, height = 0, sampling = 0, colors = 0;
    if (tjDecompressHeader3(decoder.get(), data, file.size(), &width, &height, &sampling,
                            &colors)) {
      throw DataError(tjGetErrorStr2(decoder.get()));
    }
    pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
    if (tjDecompress2(decoder.get(), data, file.size(), pixels.data(), width, 0, height, TJPF_RGB,
                      0)) {
      throw DataError(tjGetErrorStr2(decoder.get()));
    }
    ++decoded;
    read += static_cast<int64_t>(file.size());
  }
  images += decoded;
  bytes += read;
}

json decode(const std::string& folder, const std::vector<std::string>& settings) {
  const Options options = parse_options(settings);
  const auto files = read_jpegs(folder);
  std::atomic<int64_t> next{0}, images{0}, bytes{0};
  const double begin = monotonic_seconds(), until = begin + options.seconds;
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < std::max<int64_t>(1, options.threads); ++i) {
    threads.emplace_back([&] { decode_files(files, until, next, images, bytes); });
  }
  for (auto& thread : threads) thread.join();
  const double took = monotonic_seconds() - begin;
  return {{"samples_per_second", static_cast<double>(images) / took},
          {"file_bytes_per_second", static_cast<double>(bytes) / took},
          {"files", files.size()}};
}

json load(std::vector<std::string> settings) {
  double seconds = 3;
  std::erase_if(settings, [&](const std::string& setting) {
    if (!setting.starts_with("seconds=")) return false;
    seconds = parse_options({setting}).seconds;
    return true;
  });
  const auto modules = data::built_in_data_modules();
  const auto augmentations = data::built_in_augmentations();
  const auto batch_transforms = data::built_in_batch_transforms();
  data::DataConfig config(modules, augmentations, batch_transforms);
  config::Problems problems;
  read_fields(
      parse(settings, problems), [&](config::Visitor& v) { visit(v, config); }, problems);
  problems.throw_if_any();

  const Hardware hardware = read_hardware();
  const double begin = monotonic_seconds();
  const auto data = data::open_data(config, modules, augmentations,
                                    {.cores = hardware.cores,
                                     .memory_bytes = hardware.memory_bytes,
                                     .cache_folder = user_cache_folder()});
  const double opened = monotonic_seconds();
  data::Loader loader(*data->train, data::training_loader(config, hardware.cores), {.seed = 1});
  loader.next();
  const double first = monotonic_seconds();
  // With in_memory the first epoch still decodes.
  if (config.in_memory != "no") {
    while (!loader.next()->last_of_epoch) {
    }
  }
  json result = measure(loader, config.batch_size, seconds);
  result["open_seconds"] = opened - begin;
  result["first_batch_seconds"] = first - opened;
  result["output_bytes_per_second"] = result["samples_per_second"].get<double>() *
                                      data->signature.height * data->signature.width *
                                      data->signature.channels * 4;
  return result;
}

json run(const std::string& command, std::vector<std::string> arguments) {
  if (command == "overhead") return overhead(arguments);
  if (command == "load") return load(arguments);
  if (command == "decode" && !arguments.empty()) {
    return decode(arguments.front(), {arguments.begin() + 1, arguments.end()});
  }
  if (command == "make-photos" && arguments.size() == 2) {
    make_photos(arguments[0], std::stoll(arguments[1]));
    return {{"files", arguments[1]}};
  }
  throw UsageError("wrong command or arguments; see the top of benchmarks/loading/main.cpp");
}

}  // namespace

}  // namespace gallop::benchmark

int main(int count, char** arguments) {
  try {
    const std::string command = count > 1 ? arguments[1] : "";
    const auto result =
        gallop::benchmark::run(command, {arguments + std::min(2, count), arguments + count});
    std::puts(result.dump().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_loading: %s\n", error.what());
    return 1;
  }
}
