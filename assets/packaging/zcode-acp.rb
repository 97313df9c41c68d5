# A Homebrew formula that builds from source: brew install --build-from-source ./zcode-acp.rb
# Before it is used, REPOSITORY_URL has to become the address of the repository.
class ZcodeAcp < Formula
  desc "ZCode coding engine as an ACP agent, and a terminal chat on top of it"
  homepage "REPOSITORY_URL"
  license "Apache-2.0"
  head "REPOSITORY_URL.git", branch: "main"

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args
  end

  test do
    assert_match "zcode-acp #{version}", shell_output("#{bin}/zcode-acp --version") unless build.head?
    assert_match "Hello", shell_output("#{bin}/zcode-acp run --demo --demo-pace 0 hello")
  end
end
