#include "gallop/data/shared_pieces.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "gallop/base/checked.h"
#include "gallop/base/device_error.h"
#include "gallop/base/hash.h"

namespace gallop::data {

namespace {

constexpr int64_t kPage = 4096;
constexpr size_t kIdentityLetters = 32;

struct Header {
  char magic[8] = {'g', 'a', 'l', 'l', 'o', 'p', 'S', 'D'};
  uint64_t version = 1;  // Version of this layout and of the image decoding.
  int64_t pieces = 0;
  int64_t piece_bytes = 0;
  int64_t expected_bytes = 0;
  char identity[kIdentityLetters] = {};
  uint64_t checksum = 0;  // Checksum of the fields above.
};
static_assert(sizeof(Header) == 80);

uint64_t checksum_of(const Header& header) {
  return xxh3_64({reinterpret_cast<const char*>(&header), offsetof(Header, checksum)});
}

// The page-aligned offset of the first piece; nullopt if the sizes are invalid.
std::optional<int64_t> begin_of_pieces(int64_t pieces) {
  const auto table = checked_product(std::vector<int64_t>{pieces, sizeof(uint64_t)});
  const auto end = table ? checked_add(*table, 2 * kPage - 1) : std::nullopt;
  return end ? std::optional(*end / kPage * kPage) : std::nullopt;
}

std::optional<int64_t> bytes_of_file(const SharedPieces::Layout& layout) {
  const auto begin = begin_of_pieces(layout.pieces);
  const auto bytes = checked_product(std::vector<int64_t>{layout.pieces, layout.piece_bytes});
  return begin && bytes ? checked_add(*begin, *bytes) : std::nullopt;
}

bool write_all(const FileDescriptor& file, const void* from, int64_t bytes, int64_t offset) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t written = pwrite(file.get(), at, static_cast<size_t>(bytes), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    offset += written;
    bytes -= written;
  }
  return true;
}

/// A lock on one byte of a file, owned by the open file description and thus by one process
/// (fcntl(2), open file description locks).
class ByteLock {
 public:
  ByteLock(const FileDescriptor& file, int64_t byte) : file_(file.get()), byte_(byte) {
    while (!(is_held_ = set(F_WRLCK)) && errno == EINTR) {
    }
  }
  ~ByteLock() {
    if (is_held_) set(F_UNLCK);
  }
  ByteLock(const ByteLock&) = delete;
  ByteLock& operator=(const ByteLock&) = delete;

  bool is_held() const { return is_held_; }

 private:
  bool set(short type) const {
    struct flock lock = {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte_;
    lock.l_len = 1;
    return fcntl(file_, F_OFD_SETLKW, &lock) == 0;
  }

  int file_;
  int64_t byte_;
  bool is_held_ = false;
};

}  // namespace

FileDescriptor SharedPieces::create(const fs::path& path, const Layout& layout) {
  FileDescriptor file(
      open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) throw_device_error(path, "create", errno);
  Header header;
  header.pieces = layout.pieces;
  header.piece_bytes = layout.piece_bytes;
  header.expected_bytes = layout.expected_bytes;
  std::memcpy(header.identity, layout.identity.data(), kIdentityLetters);
  header.checksum = checksum_of(header);
  const auto bytes = bytes_of_file(layout);
  errno = EFBIG;
  if (!bytes || ftruncate(file.get(), *bytes) != 0 || !write_all(file, &header, sizeof header, 0)) {
    const int error = errno;
    unlink(path.c_str());
    throw_device_error(path, "write", error);
  }
  // The table is written through memory, where a full disk would raise a signal.
  if (const int error = posix_fallocate(file.get(), 0, *begin_of_pieces(layout.pieces));
      error != 0 && error != EOPNOTSUPP && error != EINVAL) {
    unlink(path.c_str());
    throw_device_error(path, "write", error);
  }
  return file;
}

std::optional<SharedPieces::Layout> SharedPieces::read_layout(const FileDescriptor& file) {
  Header header;
  struct stat info = {};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  if (pread(file.get(), &header, sizeof header, 0) != sizeof header) return std::nullopt;
  const Header own;
  if (std::memcmp(header.magic, own.magic, sizeof own.magic) != 0) return std::nullopt;
  if (header.version != own.version || header.checksum != checksum_of(header)) return std::nullopt;
  Layout layout{.identity = std::string(header.identity, kIdentityLetters),
                .pieces = header.pieces,
                .piece_bytes = header.piece_bytes,
                .expected_bytes = header.expected_bytes};
  if (bytes_of_file(layout) != info.st_size) return std::nullopt;
  return layout;
}

SharedPieces::SharedPieces(FileDescriptor file, const Layout& layout)
    : file_(std::move(file)),
      piece_bytes_(layout.piece_bytes),
      begin_(begin_of_pieces(layout.pieces).value_or(0)),
      mapped_table_(static_cast<size_t>(begin_)),
      mapped_pieces_(static_cast<size_t>(layout.pieces * layout.piece_bytes)) {
  void* const table =
      mmap(nullptr, mapped_table_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (table == MAP_FAILED) throw_device_error("shared data", "map into memory", errno);
  table_ = reinterpret_cast<uint64_t*>(static_cast<char*>(table) + kPage);
  void* const pieces =
      mmap(nullptr, mapped_pieces_, PROT_READ, MAP_SHARED, file_.get(), static_cast<off_t>(begin_));
  if (pieces == MAP_FAILED) {
    const int error = errno;
    munmap(table, mapped_table_);
    throw_device_error("shared data", "map into memory", error);
  }
  pieces_ = static_cast<const uint8_t*>(pieces);
}

SharedPieces::~SharedPieces() {
  munmap(reinterpret_cast<char*>(table_) - kPage, mapped_table_);
  munmap(const_cast<uint8_t*>(pieces_), mapped_pieces_);
}

const uint8_t* SharedPieces::find(int64_t piece, uint64_t stamp) const {
  const uint64_t mark = std::atomic_ref<uint64_t>(table_[piece]).load(std::memory_order_acquire);
  return mark != 0 && mark == mark_of(at(piece), stamp) ? at(piece) : nullptr;
}

const uint8_t* SharedPieces::get(int64_t piece, uint64_t stamp,
                                 const std::function<const uint8_t*()>& make) const {
  const std::atomic_ref<uint64_t> mark(table_[piece]);
  if (mark.load(std::memory_order_acquire) == 0) {
    const ByteLock lock(file_, piece);
    if (!lock.is_held()) return nullptr;
    if (mark.load(std::memory_order_acquire) == 0) {
      const uint8_t* const made = make();
      if (!write(piece, made)) return nullptr;
      mark.store(mark_of(made, stamp), std::memory_order_release);
      return at(piece);
    }
  }
  return find(piece, stamp);
}

// Never 0, which represents a missing piece.
uint64_t SharedPieces::mark_of(const uint8_t* piece, uint64_t stamp) const {
  const std::string_view bytes(reinterpret_cast<const char*>(piece),
                               static_cast<size_t>(piece_bytes_));
  return std::max<uint64_t>(1, xxh3_64(bytes) ^ stamp);
}

// Writes by system call, where a full folder is an error; mapped memory would raise a signal.
bool SharedPieces::write(int64_t piece, const uint8_t* from) const {
  return write_all(file_, from, piece_bytes_, begin_ + piece * piece_bytes_);
}

}  // namespace gallop::data
