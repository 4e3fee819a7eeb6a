"""Pages: room where memory that is reserved is memory taken, as on a GPU.

All of it is taken at once and given out in pages, so that sequences of any size come and go without
leaving gaps. To be attended to, a sequence's pages are gathered; so rows of one batch share an
operation whatever their capacities, which on a GPU saves far more than the copy costs.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.core.errors import CacheFull
from engine.core.kv_room import PAGE_TOKENS
from engine.kv.cells import MakeCells
from engine.kv.part import Part


class Arena:
    """Pages for the sequences of one stage. A page holds its tokens in every block.

    Args:
        num_blocks: L.
        num_tokens: Rounded down to whole pages.
        heads: 2K: keys', then values'.
        head_dim: d.
        make_cells: What they are made of.
        device: Where its tokens are attended to.
    """

    def __init__(
        self,
        num_blocks: int,
        num_tokens: int,
        heads: int,
        head_dim: int,
        make_cells: MakeCells,
        device: torch.device,
    ) -> None:
        # Page 0 belongs to nobody and stays 0: tables are filled up with it.
        num_pages = 1 + num_tokens // PAGE_TOKENS
        shape = (num_blocks, num_pages, PAGE_TOKENS, heads, head_dim)
        self.all_blocks = make_cells(shape, device)
        self.device = device
        self.num_blocks = num_blocks
        self.blocks = tuple(self.all_blocks.part(block) for block in range(num_blocks))
        """Per block, [pages, PAGE_TOKENS, 2K, d]. What no sequence has written is 0: a masked score
        of 0 times anything else could be NaN."""
        self._free = list(range(num_pages - 1, 0, -1))

    def take(self, num_pages: int) -> list[int]:
        """Pages for one sequence.

        Raises:
            CacheFull: There are not enough.
        """
        if num_pages > len(self._free):
            raise CacheFull(
                "The KV room that was promised is taken; wait for other requests to end, or try "
                "another stage."
            )
        return [self._free.pop() for _ in range(num_pages)]

    def give_back(self, pages: list[int], written: int) -> None:
        """Free pages and forget the first of them, the only ones that are not 0."""
        if written:
            self.all_blocks.clear((slice(None), torch.tensor(pages[:written], device=self.device)))
        self._free += pages


class PagePart:
    """A part in pages; see `engine.kv.part.Part`."""

    def __init__(self, arena: Arena, first: int, num_tokens: int) -> None:
        self._arena = arena
        self.pages = arena.take(-(-num_tokens // PAGE_TOKENS))
        self.first = first
        self.num_tokens = num_tokens
        self.device = arena.device
        self.num_blocks = arena.num_blocks
        self.neighbourhood = id(arena)
        self.order = self.pages[0]
        self._table = torch.tensor(self.pages, device=self.device)
        self._last_place: tuple[int, int, tuple[Tensor, Tensor]] | None = None

    @property
    def room_tokens(self) -> int:
        """See `Part`: all of its pages."""
        return len(self.pages) * PAGE_TOKENS

    def put(self, block: int, position: int, new: Tensor) -> None:
        """See `Part`."""
        self._arena.blocks[block].put(self._places(position, position + len(new)), new)

    def held(self, block: int, start: int, end: int) -> Tensor:
        """See `Part`."""
        first, last = start // PAGE_TOKENS, -(-end // PAGE_TOKENS)
        gathered = self._arena.blocks[block].get(self._table[first:last]).flatten(0, 1)
        skipped = first * PAGE_TOKENS
        return gathered[start - skipped : end - skipped].transpose(0, 1)

    def get_stored(self, block: int, start: int, end: int) -> tuple[Tensor, ...]:
        """See `Part`."""
        return self._arena.blocks[block].get_stored(self._places(start, end))

    def put_stored(self, block: int, start: int, end: int, stored: tuple[Tensor, ...]) -> None:
        """See `Part`."""
        here = tuple(t.to(self.device) for t in stored)
        self._arena.blocks[block].put_stored(self._places(start, end), here)

    def holds(self, position: int) -> bool:
        """See `Part`."""
        return 0 <= position - self.first < self.num_tokens

    def take(self, positions: Sequence[int], num_blocks: int) -> tuple[Tensor, ...]:
        """See `Part`."""
        return self._arena.all_blocks.get_stored((slice(num_blocks), *self._scattered(positions)))

    def store(self, positions: Sequence[int], stored: tuple[Tensor, ...]) -> None:
        """See `Part`."""
        here = tuple(t.to(self.device) for t in stored)
        index = (slice(len(here[0])), *self._scattered(positions))
        self._arena.all_blocks.put_stored(index, here)

    def _scattered(self, positions: Sequence[int]) -> tuple[Tensor, Tensor]:
        places = torch.tensor(positions, device=self.device)
        return self._table[places // PAGE_TOKENS], places % PAGE_TOKENS

    def count_places(self, parts: Sequence[Part]) -> int:
        """See `Part`."""
        return len(parts)

    def group(self, parts: Sequence[Part]) -> PageGroup:
        """See `Part`."""
        tables = [part.pages for part in parts if isinstance(part, PagePart)]
        return PageGroup(self._arena, tables)

    def release(self, written_tokens: int) -> None:
        """See `Part`."""
        self._arena.give_back(self.pages, -(-written_tokens // PAGE_TOKENS))

    def shorten(self, num_tokens: int, written_tokens: int) -> None:
        """Keep the first tokens alone; what else was written in their pages is not forgotten."""
        kept = -(-num_tokens // PAGE_TOKENS)
        written = max(0, -(-written_tokens // PAGE_TOKENS) - kept)
        self._arena.give_back(self.pages[kept:], written)
        self.pages, self._table = self.pages[:kept], self._table[:kept]
        self.num_tokens = num_tokens

    def _places(self, start: int, end: int) -> tuple[Tensor, Tensor]:
        """Pages and places in them, each [end - start]; every block asks for the same ones."""
        if self._last_place is None or self._last_place[:2] != (start, end):
            positions = torch.arange(start, end, device=self.device)
            pages = self._table[positions // PAGE_TOKENS]
            self._last_place = (start, end, (pages, positions % PAGE_TOKENS))
        return self._last_place[2]


class PageGroup:
    """Parts in pages; see `engine.kv.part.PartGroup`.

    Args:
        arena: Where.
        tables: Of each part, its pages.
    """

    def __init__(self, arena: Arena, tables: Sequence[list[int]]) -> None:
        self._arena = arena
        self.num_places = len(tables)
        self.places = range(len(tables))
        longest = max(map(len, tables))
        filled = [table + [0] * (longest - len(table)) for table in tables]
        self._table = torch.tensor(filled, device=arena.device)  # [n, pages]
        self._written: tuple[Tensor, tuple[Tensor, Tensor]] | None = None

    def put(self, block: int, positions: Tensor, new: Tensor, owners: Tensor | None = None) -> None:
        """See `PartGroup`."""
        if self._written is None or self._written[0] is not positions:  # new for the first block
            if owners is None:
                owners = torch.arange(self.num_places, device=self._arena.device)
            pages = self._table[owners, positions // PAGE_TOKENS]
            self._written = (positions, (pages, positions % PAGE_TOKENS))
        self._arena.blocks[block].put(self._written[1], new)

    def held(self, block: int, end: int) -> Tensor:
        """See `PartGroup`."""
        table = self._table[:, : -(-end // PAGE_TOKENS)]
        gathered = self._arena.blocks[block].get(table).flatten(1, 2)
        return gathered[:, :end].transpose(1, 2)

    def spread(self, x: Tensor) -> Tensor:
        """See `PartGroup`."""
        return x

    def collect(self, x: Tensor) -> Tensor:
        """See `PartGroup`."""
        return x
