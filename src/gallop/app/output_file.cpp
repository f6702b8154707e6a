#include "gallop/app/output_file.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"

namespace gallop::app {

namespace {

// Pipes and devices cannot be replaced atomically.
void write_into(std::FILE* file, const std::string& name, std::string_view text) {
  const bool is_written = file != nullptr &&
                          std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                          std::fflush(file) == 0;
  if (is_written) return;
  throw DeviceError(
      fmt::format("{}: cannot write: {}", printable(name), std::generic_category().message(errno)));
}

bool is_pipe_or_device(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

}  // namespace

bool is_standard_output(const std::string& file) { return file == "-" || file == "/dev/stdout"; }

void write_output(const std::string& file, std::string_view text) {
  if (is_standard_output(file)) return write_into(stdout, "standard output", text);
  if (is_pipe_or_device(file)) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened(std::fopen(file.c_str(), "we"),
                                                                 &std::fclose);
    return write_into(opened.get(), file, text);
  }
  std::error_code error;
  const fs::path target = fs::canonical(file, error);
  write_file_atomically(error ? fs::path(file) : target, text);
}

}  // namespace gallop::app
