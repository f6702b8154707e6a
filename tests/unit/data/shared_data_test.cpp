#include "gallop/data/shared_data.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "unit/data/expect_error.h"
#include "unit/data/forked.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

constexpr int64_t kNoLimit = int64_t{1} << 62;
constexpr size_t kSize = 100'000;
// File offsets of the version, the header checksum and the first piece.
constexpr off_t kVersionAt = 8, kChecksumAt = 72, kPiecesAt = 8192;

Bytes numbers(size_t size = kSize) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes.data()[i] = static_cast<uint8_t>(i * 7 + i / 256);
  return bytes;
}

bool are_numbers(const Block<uint8_t>& block) { return block == Block<uint8_t>(numbers()); }

class SharedDataTest : public testing::Test {
 protected:
  SharedDataTest() { fs::permissions(folder.path(), fs::perms::owner_all); }

  // Data files, without pure lock files.
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      if (entry.path().filename().string().size() == 32) found.push_back(entry.path());
    }
    return found;
  }
  void overwrite(const fs::path& path, off_t at, const void* bytes, size_t count) const {
    const FileDescriptor file(open(path.c_str(), O_RDWR));
    ASSERT_EQ(pwrite(file.get(), bytes, count, at), static_cast<ssize_t>(count));
  }
  // How often the content is made when it is requested now.
  int makes() const {
    int count = 0;
    SharedData shared(folder.path());
    EXPECT_TRUE(are_numbers(shared.content("x", [&] {
      ++count;
      return numbers();
    })));
    EXPECT_EQ(shared.trouble(), "");
    return count;
  }

  const TestFolder folder;
};

TEST_F(SharedDataTest, ContentIsMadeByOneProcessForAll) {
  SharedData shared(folder.path());
  int made = 0;
  const Block<uint8_t> block = shared.content("x", [&] {
    ++made;
    return numbers();
  });
  EXPECT_TRUE(are_numbers(block));
  EXPECT_EQ(made, 1);
  EXPECT_EQ(makes(), 0);
  Forked other([&] { return makes() == 0; });
  EXPECT_TRUE(other.end());
  EXPECT_EQ(shared.content("y", [] { return numbers(10); }).size(), 10u);
  EXPECT_EQ(files().size(), 2u);
  for (const fs::path& file : files()) {
    struct stat info = {};
    ASSERT_EQ(stat(file.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << "no other user may change or read it";
  }
}

TEST_F(SharedDataTest, WhatMakingThrowsIsThrownAndTheNextMakesIt) {
  SharedData shared(folder.path());
  const auto damaged = []() -> Bytes { throw DataError("truncated"); };
  EXPECT_EQ(data_error([&] { shared.content("x", damaged); }), "truncated");
  EXPECT_EQ(makes(), 1);
}

TEST_F(SharedDataTest, OthersWaitForTheOneThatMakes) {
  const Signal making, go_on, asking;
  Forked first([&] {
    SharedData shared(folder.path());
    return are_numbers(shared.content("x", [&] {
      making.send();
      go_on.wait();
      return numbers();
    }));
  });
  making.wait();
  Forked second([&] {
    asking.send();
    return makes() == 0;
  });
  asking.wait();
  go_on.send();
  EXPECT_TRUE(first.end());
  EXPECT_TRUE(second.end());
}

TEST_F(SharedDataTest, AnotherMakesWhatOneThatWasKilledHadBegun) {
  const Signal making, asking;
  Forked first([&] {
    SharedData shared(folder.path());
    shared.content("x", [&]() -> Bytes {
      making.send();
      for (;;) pause();
    });
    return false;
  });
  making.wait();
  Forked waiting([&] {
    asking.send();
    return makes() == 1;
  });
  asking.wait();
  first.kill();
  EXPECT_TRUE(waiting.end());
  EXPECT_EQ(makes(), 0);
}

TEST_F(SharedDataTest, AFileThatWasNotFinishedIsMadeAnew) {
  folder.add("new", std::string(1000, 'x'));
  fs::permissions(folder.path() / "new", fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(makes(), 1);
  EXPECT_EQ(makes(), 0);
}

TEST_F(SharedDataTest, ADamagedFileIsMadeAnew) {
  EXPECT_EQ(makes(), 1);
  const uint64_t wrong = 0x5555555555555555;
  for (const off_t at : {off_t{0}, off_t{20}, kChecksumAt, off_t{4096}, kPiecesAt + 777}) {
    overwrite(files().at(0), at, &wrong, sizeof wrong);
    EXPECT_EQ(makes(), 1) << at;
    EXPECT_EQ(makes(), 0) << at;
  }
  for (const off_t size : {off_t{0}, off_t{50}, off_t{5000}, kPiecesAt + 10}) {
    ASSERT_EQ(truncate(files().at(0).c_str(), size), 0);
    EXPECT_EQ(makes(), 1) << size;
  }
}

TEST_F(SharedDataTest, AFileOfAnotherVersionIsMadeAnew) {
  EXPECT_EQ(makes(), 1);
  const uint64_t version = 2;
  overwrite(files().at(0), kVersionAt, &version, sizeof version);
  const uint64_t checksum =
      xxh3_64(read_file(files().at(0)).substr(0, static_cast<size_t>(kChecksumAt)));
  overwrite(files().at(0), kChecksumAt, &checksum, sizeof checksum);
  EXPECT_EQ(makes(), 1);
}

TEST_F(SharedDataTest, WhoMapsAFileKeepsItWhenItIsMadeAnew) {
  SharedData shared(folder.path());
  const Block<uint8_t> block = shared.content("x", [] { return numbers(); });
  const uint64_t wrong = 1;
  overwrite(files().at(0), 0, &wrong, sizeof wrong);
  EXPECT_EQ(makes(), 1);
  EXPECT_TRUE(are_numbers(block));
}

TEST_F(SharedDataTest, WithoutAFolderEverythingIsThisProcesssOwn) {
  const auto trouble_in = [](const fs::path& path) {
    SharedData shared(path);
    EXPECT_TRUE(are_numbers(shared.content("x", [] { return numbers(); })));
    EXPECT_EQ(shared.pieces("x", 3, 10, 30, kNoLimit), nullptr);
    return shared.trouble();
  };
  EXPECT_TRUE(contains(trouble_in(folder.path() / "none"), "none: cannot open: No such file"));
  fs::permissions(folder.path(), fs::perms::owner_all | fs::perms::group_read);
  EXPECT_TRUE(contains(trouble_in(folder.path()), "its mode must be 0700"));
  EXPECT_TRUE(files().empty());
  if (geteuid() != 0) {
    fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_TRUE(contains(trouble_in(folder.path()), "cannot create: Permission denied"));
    fs::permissions(folder.path(), fs::perms::owner_all);
    return;
  }
  fs::permissions(folder.path(), fs::perms::owner_all);
  ASSERT_EQ(chown(folder.path().c_str(), 65534, 65534), 0);
  EXPECT_TRUE(contains(trouble_in(folder.path()), "belongs to another user"));
}

TEST_F(SharedDataTest, AFileThatOthersMayChangeIsNotUsed) {
  EXPECT_EQ(makes(), 1);
  fs::permissions(files().at(0), fs::perms::others_write, fs::perm_options::add);
  SharedData shared(folder.path());
  EXPECT_TRUE(are_numbers(shared.content("x", [] { return numbers(); })));
  EXPECT_TRUE(contains(shared.trouble(), "others may change it"));
}

// A full file system fails in the same calls.
TEST_F(SharedDataTest, WhereAFileCannotBeWrittenTheDataAreThisProcesssOwn) {
  Forked limited([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 50'000, .rlim_max = 50'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    SharedData shared(folder.path());
    const bool is_whole = are_numbers(shared.content("x", [] { return numbers(); }));
    return is_whole && shared.pieces("y", 30, 3000, 90'000, kNoLimit) == nullptr &&
           shared.trouble().find("cannot write: File too large") != std::string::npos;
  });
  EXPECT_TRUE(limited.end());
  EXPECT_TRUE(files().empty());
  EXPECT_FALSE(fs::exists(folder.path() / "new"));
}

TEST_F(SharedDataTest, OnAFullFileSystemTheDataAreThisProcesssOwn) {
  if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0) {
    GTEST_SKIP() << "this process may not mount a file system";
  }
  {
    SharedData shared(folder.path());
    EXPECT_TRUE(are_numbers(shared.content("x", [] { return numbers(); })));
    EXPECT_TRUE(contains(shared.trouble(), "97.7 KiB are needed and 64.0 KiB are free"));
    // More pieces than there is space for, as other programs use it in the meantime.
    const auto pieces = shared.pieces("p", 20, 10'000, 10'000, kNoLimit);
    ASSERT_TRUE(pieces);
    const Bytes content = numbers();
    int64_t written = 0;
    for (int64_t i = 0; i < 20; ++i) {
      const uint8_t* piece = pieces->get(i, 0, [&] { return content.data(); });
      if (piece == nullptr) continue;
      ++written;
      EXPECT_TRUE(std::equal(piece, piece + 10'000, content.data()));
    }
    EXPECT_GT(written, 3);
    EXPECT_LT(written, 7);
  }
  umount2(folder.path().c_str(), MNT_DETACH);
}

TEST_F(SharedDataTest, DataThatNobodyUsesMakeRoom) {
  SharedData shared(folder.path());
  auto first = shared.pieces("a", 10, 1000, 10'000, 25'000);
  auto second = shared.pieces("b", 10, 1000, 10'000, 25'000);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(shared.pieces("c", 10, 1000, 10'000, 25'000), nullptr);
  EXPECT_TRUE(contains(shared.trouble(),
                       "9.8 KiB are needed, and other trainings use 19.5 KiB of "
                       "the 24.4 KiB that data may take"));
  EXPECT_EQ(files().size(), 2u);
  first.reset();
  EXPECT_TRUE(shared.pieces("c", 10, 1000, 10'000, 25'000));
  EXPECT_EQ(files().size(), 2u);
  EXPECT_TRUE(shared.pieces("b", 10, 1000, 10'000, 25'000)) << "what is there needs no room";
  EXPECT_EQ(SharedData(folder.path())
                .pieces("d", int64_t{1} << 30, int64_t{1} << 30, int64_t{1} << 60, kNoLimit),
            nullptr);
}

TEST_F(SharedDataTest, PiecesAreMadeOnceAndKnownByTheirState) {
  SharedData shared(folder.path());
  const auto pieces = shared.pieces("p", 20, 10, 200, kNoLimit);
  const auto again = SharedData(folder.path()).pieces("p", 20, 10, 200, kNoLimit);
  const Bytes content = numbers(200);
  int made = 0;
  const auto get = [&](const SharedPieces& from, int64_t piece, uint64_t stamp) {
    return from.get(piece, stamp, [&] {
      ++made;
      return content.data() + piece * 10;
    });
  };
  const uint8_t* const seven = get(*pieces, 7, 1);
  ASSERT_NE(seven, nullptr);
  EXPECT_TRUE(std::equal(seven, seven + 10, content.data() + 70));
  EXPECT_EQ(get(*pieces, 7, 1), seven);
  EXPECT_EQ(pieces->at(7), seven);
  const uint8_t* const others = get(*again, 7, 1);
  ASSERT_NE(others, nullptr);
  EXPECT_NE(others, seven) << "mapped twice";
  EXPECT_TRUE(std::equal(others, others + 10, seven));
  EXPECT_EQ(made, 1);
  EXPECT_EQ(get(*again, 7, 2), nullptr) << "of another state, and never changed";
  EXPECT_TRUE(std::equal(others, others + 10, content.data() + 70));
  EXPECT_EQ(again->find(8, 1), nullptr);
  EXPECT_NE(get(*again, 8, 1), nullptr);
  EXPECT_NE(pieces->find(8, 1), nullptr);
  EXPECT_EQ(shared.pieces("p", 21, 10, 210, kNoLimit)->find(7, 1), nullptr) << "another file";
}

TEST_F(SharedDataTest, APieceIsMadeByOneOfManyProcesses) {
  constexpr int64_t kPieces = 200;
  const Bytes content = numbers(kPieces * 10);
  const Signal go;
  const auto get_all = [&] {
    const auto pieces = SharedData(folder.path()).pieces("p", kPieces, 10, 1, kNoLimit);
    go.wait();
    int made = 0;
    for (int64_t i = 0; i < kPieces; ++i) {
      const uint8_t* const piece = pieces->get(i, 0, [&] {
        ++made;
        usleep(200);  // Gives other processes time to start.
        return content.data() + i * 10;
      });
      if (!std::equal(piece, piece + 10, content.data() + i * 10)) return -1;
    }
    return made;
  };
  // The number of pieces that each process has made.
  std::vector<std::unique_ptr<Forked>> processes;
  auto* const made = static_cast<std::atomic<int>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int i = 0; i < 4; ++i) {
    processes.push_back(std::make_unique<Forked>([&] {
      const int own = get_all();
      *made += own;
      return own >= 0;
    }));
  }
  for (int i = 0; i < 4; ++i) go.send();
  for (const auto& process : processes) EXPECT_TRUE(process->end());
  EXPECT_EQ(*made, kPieces);
  munmap(made, 4096);
}

}  // namespace
}  // namespace gallop::data
